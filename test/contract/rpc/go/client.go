package main

import (
	"context"
	"encoding/json"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
)

type call struct {
	Method  string          `json:"method"`
	Request json.RawMessage `json:"request"`
}

type outcome struct {
	Method   string          `json:"method"`
	Response json.RawMessage `json:"response,omitempty"`
	Code     string          `json:"code,omitempty"`
	Message  string          `json:"message,omitempty"`
}

func runClient() error {
	config, err := tlsConfig()
	if err != nil {
		return err
	}
	transport := insecure.NewCredentials()
	if config != nil {
		transport = credentials.NewTLS(config)
	}
	connection, err := grpc.NewClient(*address, grpc.WithTransportCredentials(transport))
	if err != nil {
		return err
	}
	defer connection.Close()
	return eachLine(func(line call) any {
		response, err := invoke(connection, line)
		if err != nil {
			return outcome{Method: line.Method, Code: status.Code(err).String(), Message: err.Error()}
		}
		return outcome{Method: line.Method, Response: response}
	})
}

func invoke(connection *grpc.ClientConn, line call) (json.RawMessage, error) {
	input, output, err := findMethod(line.Method)
	if err != nil {
		return nil, err
	}
	request, response := input.New().Interface(), output.New().Interface()
	if err := protojson.Unmarshal(line.Request, request); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := connection.Invoke(ctx, line.Method, request, response); err != nil {
		return nil, err
	}
	return protojson.Marshal(response)
}
