// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Listeners names the sockets on which the program listens: tcp:<port>, or the path of a unix socket, which begins with @
// when it is abstract.
func (p *Process) Listeners() ([]string, error) {
	inodes, err := p.socketInodes()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, table := range []struct {
		file string
		name func(fields []string) (inode, name string)
	}{
		{"net/tcp", tcpListener}, {"net/tcp6", tcpListener}, {"net/unix", unixListener},
	} {
		content, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), table.file))
		if err != nil {
			return nil, err
		}
		for _, line := range strings.Split(string(content), "\n") {
			if inode, name := table.name(strings.Fields(line)); name != "" && inodes[inode] {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

func (p *Process) socketInodes() (map[string]bool, error) {
	dir := filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), "fd")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	inodes := map[string]bool{}
	for _, entry := range entries {
		// A descriptor may be closed while we look.
		target, err := os.Readlink(filepath.Join(dir, entry.Name()))
		if inode, ok := strings.CutPrefix(target, "socket:["); err == nil && ok {
			inodes[strings.TrimSuffix(inode, "]")] = true
		}
	}
	return inodes, nil
}

// tcpListener reads a line of /proc/net/tcp: the local address is the second field, the state (0A listens) the fourth.
func tcpListener(fields []string) (inode, name string) {
	if len(fields) < 10 || fields[3] != "0A" {
		return "", ""
	}
	_, hex, _ := strings.Cut(fields[1], ":")
	port, err := strconv.ParseUint(hex, 16, 16)
	if err != nil {
		return "", ""
	}
	return fields[9], fmt.Sprintf("tcp:%d", port)
}

// unixListener reads a line of /proc/net/unix: flag 00010000 says that the socket accepts connections.
func unixListener(fields []string) (inode, name string) {
	if len(fields) < 8 || fields[3] != "00010000" {
		return "", ""
	}
	return fields[6], fields[7]
}

// Connected reports whether a socket of the program has this local address of TCP.
func (p *Process) Connected(local net.Addr) bool {
	address, ok := local.(*net.TCPAddr)
	if !ok {
		return false
	}
	inodes, err := p.socketInodes()
	if err != nil {
		return false
	}
	port := fmt.Sprintf(":%04X", address.Port)
	for _, file := range []string{"net/tcp", "net/tcp6"} {
		content, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), file))
		if err != nil {
			return false
		}
		for _, line := range strings.Split(string(content), "\n") {
			fields := strings.Fields(line)
			if len(fields) >= 10 && strings.HasSuffix(fields[1], port) && inodes[fields[9]] {
				return true
			}
		}
	}
	return false
}
