// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Command registry serves a registry of images over HTTP without TLS and without authentication, for tests. It prints a line with its
// address once it answers.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "registry:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("registry", flag.ContinueOnError)
	address := fs.String("address", "127.0.0.1:0", "address and port to listen on; port 0 for a free one")
	dir := fs.String("dir", "", "directory for the content of images; it is not read by the next registry")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *dir == "" {
		return errors.New("--dir is required")
	}
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		return err
	}
	// Requests are not logged; manifests are in memory.
	handler := registry.New(registry.WithBlobHandler(registry.NewDiskBlobHandler(*dir)), registry.WithReferrersSupport(true),
		registry.Logger(log.New(io.Discard, "", 0)))
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	fmt.Fprintf(out, "serving on %s\n", listener.Addr())
	stopped := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stopped()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
