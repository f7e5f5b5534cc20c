module cnpg-ts.test/rpc

go 1.26

require (
	github.com/cloudnative-pg/cnpg-i v0.5.0
	github.com/evanphx/json-patch/v5 v5.9.11
	google.golang.org/grpc v1.82.1
	google.golang.org/protobuf v1.36.11
)

require (
	golang.org/x/net v0.53.0 // indirect
	golang.org/x/sys v0.43.0 // indirect
	golang.org/x/text v0.36.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260414002931-afd174a4e478 // indirect
)
