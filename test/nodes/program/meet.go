// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

// port is where pods that meet listen.
const port = "7000"

// meet speaks to all names, and waits until all of them have spoken to this pod. Its own name may be among them.
func meet(ctx context.Context, names []string) error {
	listener, err := net.Listen("tcp", ":"+port)
	if err != nil {
		return err
	}
	defer listener.Close()
	heard := make(chan string)
	go listen(listener, heard)
	said := make(chan string)
	self, err := os.Hostname()
	if err != nil {
		return err
	}
	for _, name := range names {
		go speak(ctx, name, self, said)
	}
	from, to := map[string]bool{}, map[string]bool{}
	for len(from) < len(names) || len(to) < len(names) {
		select {
		case name := <-heard:
			if from[name] { // it did not get the answer
				continue
			}
			from[name] = true
			fmt.Printf("heard %s, %d of %d\n", name, len(from), len(names))
		case name := <-said:
			to[name] = true
			fmt.Printf("spoke to %s, %d of %d\n", name, len(to), len(names))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// listen reports who speaks to this pod, and answers.
func listen(listener net.Listener, heard chan<- string) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer connection.Close()
			_ = connection.SetDeadline(time.Now().Add(10 * time.Second))
			if name, err := bufio.NewReader(connection).ReadString('\n'); err == nil {
				// The answer comes first: afterwards this program may end.
				_, _ = fmt.Fprintln(connection, "welcome")
				heard <- strings.TrimSpace(name)
			}
		}()
	}
}

// speak tries until the pod with that name has answered.
func speak(ctx context.Context, name, self string, said chan<- string) {
	for ; ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
		if err := speakOnce(ctx, name, self); err == nil {
			said <- name
			return
		}
	}
}

// speakOnce says who this pod is, and waits for the answer however long it takes: the other pod may end once it has heard this one, and
// then does not answer again.
func speakOnce(ctx context.Context, name, self string) error {
	connection, err := (&net.Dialer{Timeout: 2 * time.Second}).DialContext(ctx, "tcp", net.JoinHostPort(name, port))
	if err != nil {
		return err
	}
	defer connection.Close()
	if _, err := fmt.Fprintln(connection, self); err != nil {
		return err
	}
	_, err = bufio.NewReader(connection).ReadString('\n')
	return err
}
