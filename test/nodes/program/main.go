// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Command program is the one program in the image of tests on real nodes. Without arguments it waits for SIGTERM, which is what holds the namespaces of a pod.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const usage = `usage: program                 wait for SIGTERM
       program exit CODE       end with this exit code
       program fill            take memory until something ends it
       program meet NAME...    end once this pod and each of those with these names have spoken to each other`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	code, err := run(ctx, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

func run(ctx context.Context, args []string) (int, error) {
	switch {
	case len(args) == 0:
		<-ctx.Done()
		return 0, nil
	case args[0] == "exit" && len(args) == 2:
		return strconv.Atoi(args[1])
	case args[0] == "fill" && len(args) == 1:
		return fill(ctx), nil
	case args[0] == "meet" && len(args) > 1:
		if err := meet(ctx, args[1:]); err != nil {
			return 1, err
		}
		return 0, nil
	}
	return 2, errors.New(usage)
}

// fill takes and uses 8 MiB at a time.
func fill(ctx context.Context) int {
	var taken [][]byte
	for ctx.Err() == nil {
		block := make([]byte, 8<<20)
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		taken = append(taken, block)
		time.Sleep(10 * time.Millisecond)
	}
	return len(taken) & 1
}

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

func speakOnce(ctx context.Context, name, self string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(name, port))
	if err != nil {
		return err
	}
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(2 * time.Second))
	if _, err := fmt.Fprintln(connection, self); err != nil {
		return err
	}
	_, err = bufio.NewReader(connection).ReadString('\n')
	return err
}
