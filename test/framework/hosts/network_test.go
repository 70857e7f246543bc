// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"net"
	"os"
	"testing"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// TestLoss sends datagrams from one host to another one, which answers each.
func TestLoss(t *testing.T) {
	tier.OnRequest(t, "makes network namespaces")
	if os.Geteuid() != 0 {
		t.Skip("only root can make network namespaces")
	}
	n, err := New(3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	a, b, c := n.Hosts[0], n.Hosts[1], n.Hosts[2]
	for _, h := range n.Hosts {
		echo(t, h)
	}
	mustAnswer := func(from *Host, to *Host, least, most int) {
		t.Helper()
		if got := answers(t, from, to.Address); got < least || got > most {
			t.Errorf("%d of %d datagrams to %s were answered, must be %d to %d", got, datagrams, to.Address, least, most)
		}
	}
	mustAnswer(a, b, datagrams, datagrams)
	mustLose := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	mustLose(b.Lose(a, 1))
	mustAnswer(a, b, 0, 0)
	mustAnswer(b, a, 0, 0)
	mustAnswer(a, c, datagrams, datagrams)
	mustAnswer(b, c, datagrams, datagrams)
	if got := answers(t, nil, b.Address); got != datagrams {
		t.Errorf("%d of %d datagrams from this machine were answered", got, datagrams)
	}
	mustLose(n.Heal())
	mustLose(b.Lose(a, 0.3))
	mustAnswer(a, b, datagrams/2, datagrams*9/10)
	mustLose(n.Heal())
	mustAnswer(a, b, datagrams, datagrams)
}

const (
	datagrams = 200
	port      = "2380"
)

// listen opens a socket on a host; nil is this machine.
func listen(t *testing.T, h *Host, address string) (conn net.PacketConn) {
	t.Helper()
	open := func() (err error) {
		conn, err = net.ListenPacket("udp", address)
		return err
	}
	err := error(nil)
	if h == nil {
		err = open()
	} else {
		err = h.Do(open)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func echo(t *testing.T, h *Host) {
	t.Helper()
	conn := listen(t, h, net.JoinHostPort(h.Address, port))
	go func() {
		for buffer := make([]byte, 1); ; {
			_, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo(buffer, from)
		}
	}()
}

// answers returns how many datagrams were answered.
func answers(t *testing.T, from *Host, to string) (answered int) {
	t.Helper()
	conn := listen(t, from, ":0")
	target, err := net.ResolveUDPAddr("udp", net.JoinHostPort(to, port))
	if err != nil {
		t.Fatal(err)
	}
	for range datagrams {
		if _, err := conn.WriteTo([]byte{1}, target); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond) // the socket has little room
	}
	if err := conn.SetReadDeadline(time.Now().Add(2 * time.Second)); err != nil {
		t.Fatal(err)
	}
	for buffer := make([]byte, 1); answered < datagrams; answered++ {
		if _, _, err := conn.ReadFrom(buffer); err != nil {
			return answered
		}
	}
	return answered
}
