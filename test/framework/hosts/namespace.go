// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// ownNamespace is the network namespace of a thread.
const ownNamespace = "/proc/thread-self/ns/net"

// namespace is a network namespace, which exists while the file is open or a program runs in it.
type namespace struct{ file *os.File }

func newNamespace() (n *namespace, err error) {
	err = elsewhere(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("making a network namespace: %w", err)
		}
		file, err := os.Open(ownNamespace)
		n = &namespace{file}
		return err
	})
	return n, err
}

// path names the namespace for commands.
func (n *namespace) path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.file.Fd()) }

// do calls a function whose programs start in the namespace.
func (n *namespace) do(start func() error) error {
	return elsewhere(func() error {
		if err := unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("entering a network namespace: %w", err)
		}
		return start()
	})
}

// elsewhere calls a function that may change the network namespace of the thread, and changes it back. The thread does not end: the programs
// that it has started would be killed.
func elsewhere(do func() error) error {
	runtime.LockOSThread()
	before, err := os.Open(ownNamespace)
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer before.Close()
	err = do()
	if back := unix.Setns(int(before.Fd()), unix.CLONE_NEWNET); back != nil {
		// The thread stays locked, so that nothing else runs in the namespace.
		return fmt.Errorf("leaving a network namespace: %w", back)
	}
	runtime.UnlockOSThread()
	return err
}

// run runs commands in the namespace, one after the other. Their output matters only if they fail.
func (n *namespace) run(commands ...string) error {
	return n.do(func() error { return run(commands...) })
}

func run(commands ...string) error {
	for _, command := range commands {
		words := strings.Fields(command)
		if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", command, err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}
