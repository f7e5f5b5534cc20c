package main

import (
	"encoding/json"
	"net"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
)

// A canned answer: a message, or a status.
type answer struct {
	Response json.RawMessage `json:"response"`
	Code     codes.Code      `json:"code"`
	Message  string          `json:"message"`
}

func runServer() error {
	var canned map[string]answer
	if err := json.Unmarshal([]byte(*answers), &canned); err != nil {
		return err
	}
	config, err := tlsConfig()
	if err != nil {
		return err
	}
	options := []grpc.ServerOption{grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		return serve(canned, stream)
	})}
	if config != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(config)))
	}
	network, target := "tcp", *address
	if path, isUnix := strings.CutPrefix(target, "unix://"); isUnix {
		network, target = "unix", path
	}
	listener, err := net.Listen(network, target)
	if err != nil {
		return err
	}
	if err := output.Encode(map[string]string{"address": listener.Addr().String()}); err != nil {
		return err
	}
	return grpc.NewServer(options...).Serve(listener)
}

func serve(canned map[string]answer, stream grpc.ServerStream) error {
	path, _ := grpc.MethodFromServerStream(stream)
	input, reply, err := findMethod(path)
	if err != nil {
		return status.Error(codes.Unimplemented, path)
	}
	request := input.New().Interface()
	if err := stream.RecvMsg(request); err != nil {
		return err
	}
	text, err := protojson.Marshal(request)
	if err != nil {
		return err
	}
	if err := output.Encode(call{Method: path, Request: text}); err != nil {
		return err
	}
	found, known := canned[path]
	if !known {
		return status.Error(codes.Unimplemented, path)
	}
	if found.Code != codes.OK {
		return status.Error(found.Code, found.Message)
	}
	response := reply.New().Interface()
	if err := protojson.Unmarshal(found.Response, response); err != nil {
		return err
	}
	return stream.SendMsg(response)
}
