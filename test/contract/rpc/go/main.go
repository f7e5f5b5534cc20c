// The Go side of the wire: a client and a server over the published Go types of the protocol, and the patch engine that Go
// operators use. Each mode reads JSON lines and writes JSON lines, so that the tests stay in TypeScript.
package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"strings"

	_ "github.com/cloudnative-pg/cnpg-i/pkg/backup"
	_ "github.com/cloudnative-pg/cnpg-i/pkg/identity"
	_ "github.com/cloudnative-pg/cnpg-i/pkg/lifecycle"
	_ "github.com/cloudnative-pg/cnpg-i/pkg/metrics"
	_ "github.com/cloudnative-pg/cnpg-i/pkg/operator"
	_ "github.com/cloudnative-pg/cnpg-i/pkg/postgres"
	_ "github.com/cloudnative-pg/cnpg-i/pkg/reconciler"
	_ "github.com/cloudnative-pg/cnpg-i/pkg/restore/job"
	_ "github.com/cloudnative-pg/cnpg-i/pkg/wal"
	_ "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

var (
	address    = flag.String("address", "", "unix:///path, or host:port")
	cert       = flag.String("cert", "", "own certificate")
	key        = flag.String("key", "", "own key")
	peer       = flag.String("peer", "", "certificate that the peer is checked with")
	serverName = flag.String("server-name", "", "name in the server's certificate")
	answers    = flag.String("answers", "", "JSON object: method to answer")
)

func main() {
	flag.Parse()
	modes := map[string]func() error{"client": runClient, "server": runServer, "patch": runPatch}
	mode, known := modes[flag.Arg(0)]
	if !known {
		panic("modes: client, server, patch")
	}
	if err := mode(); err != nil {
		panic(err)
	}
}

var output = json.NewEncoder(os.Stdout)

// eachLine decodes the lines of the input and writes an answer to each.
func eachLine[T any](answer func(T) any) error {
	scanner := bufio.NewScanner(os.Stdin)
	scanner.Buffer(nil, 1<<24)
	for scanner.Scan() {
		var line T
		if err := json.Unmarshal(scanner.Bytes(), &line); err != nil {
			return err
		}
		if err := output.Encode(answer(line)); err != nil {
			return err
		}
	}
	return scanner.Err()
}

// tlsConfig is what Go operators and plugins use; nil without certificates.
func tlsConfig() (*tls.Config, error) {
	if *cert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(*cert, *key)
	if err != nil {
		return nil, err
	}
	pem, err := os.ReadFile(*peer)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, errors.New("no certificate in " + *peer)
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{pair},
		RootCAs:      roots,
		ServerName:   *serverName,
		ClientCAs:    roots,
		ClientAuth:   tls.RequireAndVerifyClientCert,
	}, nil
}

// findMethod resolves "/package.Service/Method" to the published types of its messages.
func findMethod(path string) (input, output protoreflect.MessageType, err error) {
	name := protoreflect.FullName(strings.ReplaceAll(path[1:], "/", "."))
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
	if err != nil {
		return nil, nil, err
	}
	method := found.(protoreflect.MethodDescriptor)
	input, err = protoregistry.GlobalTypes.FindMessageByName(method.Input().FullName())
	if err != nil {
		return nil, nil, err
	}
	output, err = protoregistry.GlobalTypes.FindMessageByName(method.Output().FullName())
	return input, output, err
}
