// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Command s3 is an object storage in memory for tests: it serves one bucket, and prints its address when it does. It ends with its
// standard input, so that it does not outlive a test that was killed.
package main

import (
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

func main() {
	bucket := flag.String("bucket", "backups", "name of the bucket")
	flag.Parse()
	if err := run(*bucket); err != nil {
		fmt.Fprintln(os.Stderr, "s3:", err)
		os.Exit(1)
	}
}

func run(bucket string) error {
	storage := s3mem.New()
	if err := storage.CreateBucket(bucket); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: gofakes3.New(storage).Server(), ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	fmt.Printf("http://%s\n", listener.Addr())
	go func() {
		_, err := io.Copy(io.Discard, os.Stdin)
		failed <- err
	}()
	return <-failed
}
