// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package allreduce

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"time"
)

// ring is the place of a worker in the ring: it receives from the worker before it and sends to the one after it.
type ring struct {
	rank, workers int
	from          *bufio.Reader
	to            *bufio.Writer
	connections   []net.Conn
}

const (
	dialTimeout = 2 * time.Second
	dialPause   = 100 * time.Millisecond
)

// join connects the worker with its neighbors. Workers of another attempt, which have not ended yet or are not known to
// have ended, are turned away.
func join(ctx context.Context, c Config) (*ring, error) {
	listener, err := net.Listen("tcp", c.listen())
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer stop()
	defer listener.Close()
	type end struct {
		net.Conn
		error
	}
	before, after := make(chan end, 1), make(chan end, 1)
	go func() { conn, err := accept(listener, c.hello(c.previous())); before <- end{conn, err} }()
	go func() { conn, err := dial(ctx, c.address(c.next()), c.hello(c.Rank())); after <- end{conn, err} }()
	from, to := <-before, <-after
	for _, e := range []end{from, to} {
		if e.error != nil {
			return nil, e.error
		}
	}
	return &ring{c.Rank(), c.Workers(), bufio.NewReader(from.Conn), bufio.NewWriter(to.Conn), []net.Conn{from.Conn, to.Conn}}, nil
}

// accept waits for the worker that says this hello, and answers with the same.
func accept(listener net.Listener, hello string) (net.Conn, error) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return nil, err
		}
		_ = conn.SetDeadline(time.Now().Add(dialTimeout))
		if said, err := readLine(conn); err == nil && said == hello {
			if _, err := conn.Write([]byte(hello)); err == nil {
				return conn, conn.SetDeadline(time.Time{})
			}
		}
		conn.Close()
	}
}

// dial tries until the worker of that address has accepted the hello: its name resolves only once its pod has an address.
func dial(ctx context.Context, address, hello string) (net.Conn, error) {
	for ; ctx.Err() == nil; time.Sleep(dialPause) {
		conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", address)
		if err != nil {
			continue
		}
		_ = conn.SetDeadline(time.Now().Add(2 * dialTimeout))
		if _, err := conn.Write([]byte(hello)); err == nil {
			if said, err := readLine(conn); err == nil && said == hello {
				return conn, conn.SetDeadline(time.Time{})
			}
		}
		conn.Close()
	}
	return nil, ctx.Err()
}

// readLine reads no more than the line, of at most 64 bytes.
func readLine(conn net.Conn) (string, error) {
	var line []byte
	for b := make([]byte, 1); len(line) < 64; {
		if _, err := conn.Read(b); err != nil {
			return "", err
		}
		if line = append(line, b[0]); b[0] == '\n' {
			return string(line), nil
		}
	}
	return "", fmt.Errorf("%q is not a hello", line)
}

func (r *ring) close() {
	for _, conn := range r.connections {
		conn.Close()
	}
}

// exchange sends values to the next worker and receives as many as into has from the previous one.
func (r *ring) exchange(send, into []uint64) error {
	sent := make(chan error, 1)
	go func() {
		err := binary.Write(r.to, binary.BigEndian, send)
		if err == nil {
			err = r.to.Flush()
		}
		sent <- err
	}()
	err := binary.Read(r.from, binary.BigEndian, into)
	if sendErr := <-sent; err == nil {
		err = sendErr
	}
	return err
}

// broadcast gives all workers the values of rank 0.
func (r *ring) broadcast(values []uint64) error {
	if r.rank > 0 {
		if err := r.exchange(nil, values); err != nil {
			return err
		}
	}
	if r.rank < r.workers-1 {
		return r.exchange(values, nil)
	}
	return nil
}

// sum replaces the values of each worker by the sums over all workers, in two rounds: in the first, each chunk is added
// up on its way round the ring, so that each worker ends with the sums of one chunk; in the second, these go round.
func (r *ring) sum(values []uint64) error {
	for round := range 2 {
		for i := range r.workers - 1 {
			chunk := r.rank - i + round
			send, receive := r.chunk(values, chunk), r.chunk(values, chunk-1)
			got := make([]uint64, len(receive))
			if err := r.exchange(send, got); err != nil {
				return err
			}
			for j := range receive {
				if round == 0 {
					got[j] += receive[j]
				}
				receive[j] = got[j]
			}
		}
	}
	return nil
}

// chunk is one of as many parts as there are workers. Numbers go round.
func (r *ring) chunk(values []uint64, number int) []uint64 {
	number = ((number % r.workers) + r.workers) % r.workers
	return values[number*len(values)/r.workers : (number+1)*len(values)/r.workers]
}
