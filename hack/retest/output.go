// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// maxText is how many bytes of the output of a test are kept, half of them from its beginning and half from its end.
const maxText = 1 << 20

// text is output that is kept up to a limit.
type text struct {
	limit      int
	head, tail []byte
	dropped    int
}

func (t *text) write(s string) {
	half := t.limit / 2
	if room := half - len(t.head); room > 0 && len(t.tail) == 0 {
		room = min(room, len(s))
		t.head, s = append(t.head, s[:room]...), s[room:]
	}
	t.tail = append(t.tail, s...)
	if len(t.tail) > 2*half {
		drop := len(t.tail) - half
		t.dropped += drop
		t.tail = slices.Delete(t.tail, 0, drop)
	}
}

func (t *text) empty() bool { return len(t.head) == 0 }

func (t *text) String() string {
	s := string(t.head)
	if t.dropped > 0 {
		s += fmt.Sprintf("\n... %d bytes of output are left out ...\n", t.dropped)
	}
	s += string(t.tail)
	if s != "" && !strings.HasSuffix(s, "\n") {
		s += "\n"
	}
	return s
}

// message matches a line that a test has logged: "    file_test.go:12: what is wrong".
var message = regexp.MustCompile(`^\s*[\w./-]+\.go:\d+: `)

// test is a test or subtest that has not ended.
type test struct {
	name, header string
	output       text
	// begun says that the test has started.
	partial, begun bool
	// logged is the first line that the test has logged, and inner the one of its first subtest that failed.
	logged, inner string
}

// write adds output that is not of the test framework.
func (t *test) write(s string) {
	begins := !t.partial
	t.partial = !strings.HasSuffix(s, "\n")
	if begins {
		line := strings.TrimSpace(s)
		for _, frame := range []string{"RUN", "PAUSE", "CONT", "NAME", "ATTR", "ARTIFACTS"} {
			if rest, found := strings.CutPrefix(line, "=== "+frame); found && strings.HasPrefix(strings.TrimLeft(rest, " "), t.name) {
				return
			}
		}
		for _, result := range []string{"FAIL", "PASS", "SKIP"} {
			if strings.HasPrefix(line, "--- "+result+": "+t.name+" (") {
				t.header = line
				return
			}
		}
		if t.logged == "" && message.MatchString(s) {
			t.logged = line
		}
	}
	t.output.write(s)
}

// message is the first line that says why the test failed.
func (t *test) message() string {
	if t.inner != "" {
		return t.inner
	}
	if t.logged != "" {
		return t.logged
	}
	for line := range bytes.Lines(t.output.head) {
		if line := bytes.TrimSpace(line); len(line) > 0 {
			return string(line)
		}
	}
	return noMessage
}

// failed is the output of the failed test, as go test prints it.
func (t *test) failed() string {
	header := t.header
	if header == "" {
		header = "--- FAIL: " + t.name
	}
	return header + "\n" + t.output.String()
}

// indent moves all lines four columns to the right.
func indent(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		if line != "\n" {
			b.WriteString("    ")
		}
		b.WriteString(line)
	}
	return b.String()
}
