// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"bufio"
	"fmt"
	"net"
	"testing"

	"github.com/jobset-apiserver/jobset-apiserver/test/localcluster"
)

// named is a server that answers each line with its name.
func named(t *testing.T, name string) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					fmt.Fprintln(conn, name)
				}
			}()
		}
	}()
	return listener.Addr().String()
}

// ask returns the name of the server that answers, and "" for none.
func ask(conn net.Conn) string {
	fmt.Fprintln(conn)
	lines := bufio.NewScanner(conn)
	lines.Scan()
	return lines.Text()
}

func TestBalancerSendsNewConnectionsToEndpoints(t *testing.T) {
	ports, err := localcluster.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	b, err := newBalancer("127.0.0.1:" + ports[0])
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	dial := func() net.Conn {
		t.Helper()
		conn, err := net.Dial("tcp", "127.0.0.1:"+ports[0])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	if conn, err := net.Dial("tcp", "127.0.0.1:"+ports[0]); err == nil {
		if got := ask(conn); got != "" {
			t.Errorf("%q answered without an endpoint", got)
		}
		conn.Close()
	}
	first, second := named(t, "first"), named(t, "second")
	b.set(first, true)
	kept := dial()
	if got := ask(kept); got != "first" {
		t.Errorf("%q answered, must be the only endpoint", got)
	}
	b.set(second, true)
	seen := map[string]bool{}
	for range 100 {
		seen[ask(dial())] = true
	}
	if !seen["first"] || !seen["second"] || len(seen) != 2 {
		t.Errorf("%v answered 100 connections, must be both endpoints", seen)
	}
	b.set(first, false)
	for range 20 {
		if got := ask(dial()); got != "second" {
			t.Errorf("%q answered, must be the endpoint that is left", got)
		}
	}
	if got := ask(kept); got != "first" {
		t.Errorf("%q answered on a connection from before, must be its server", got)
	}
}
