// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// free reports whether nothing listens on the port.
func free(port string) bool {
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		return false
	}
	return listener.Close() == nil
}

// reservation is how long a port is kept for whoever it was given to, longer than any run of tests.
const reservation = 2 * time.Hour

// reserve reports whether the port was not given to any program lately. A program that restarts does not listen for a while, and another
// run of tests beside it must not take its port meanwhile. Where files cannot be written, no port is reserved.
func reserve(port string) bool {
	dir := filepath.Join(os.TempDir(), "jobset-apiserver-ports")
	path := filepath.Join(dir, port)
	if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) < reservation {
		return false
	}
	if os.MkdirAll(dir, 0o755) != nil {
		return true
	}
	_ = os.Remove(path)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return !errors.Is(err, fs.ErrExist)
	}
	return file.Close() == nil
}

// FreePorts returns different free ports, below the range from which the kernel picks ports for outgoing connections. None of them is
// returned again for two hours.
func FreePorts(n int) ([]string, error) {
	const first, count, attempts = 20000, 12000, 500
	var ports []string
	for range attempts {
		if len(ports) == n {
			return ports, nil
		}
		port := strconv.Itoa(first + rand.IntN(count))
		if !slices.Contains(ports, port) && free(port) && reserve(port) {
			ports = append(ports, port)
		}
	}
	return nil, errors.New("no free port between 20000 and 31999")
}

// port returns the port of one of our programs.
func (s *settings) port(name string) string {
	content, _ := os.ReadFile(s.path("ports", name))
	return strings.TrimSpace(string(content))
}

// choosePort keeps the port of a program over restarts, unless something else has taken it meanwhile.
func (s *settings) choosePort(name string) error {
	if port := s.port(name); port != "" && free(port) {
		return nil
	}
	ports, err := FreePorts(1)
	if err != nil {
		return err
	}
	return writeFile(s.path("ports", name), ports[0]+"\n")
}
