// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package runbook lets tests run the commands of a page of the documentation as they stand there.
package runbook

import (
	"regexp"
	"strings"
	"testing"
)

// program is an indented line with a command of a program that tests have.
var program = regexp.MustCompile(`^(?:jobset-apiserver|kubectl|etcdctl|etcdutl) .*$`)

// Page is a page with commands.
type Page struct {
	path     string
	commands map[string]bool // whether it was used
}

// Open reads the page. Its commands are the indented lines that begin with the name of a program.
func Open(t testing.TB, path string) *Page {
	t.Helper()
	p := &Page{path: path, commands: map[string]bool{}}
	for _, text := range Lines(t, path, "") {
		if command := program.FindString(strings.TrimLeft(text, " ")); command != "" {
			command, _, _ = strings.Cut(command, "    #")
			p.commands[strings.TrimSpace(command)] = false
		}
	}
	if len(p.commands) == 0 {
		t.Fatalf("%s has no commands", path)
	}
	return p
}

// Command returns the words of the command, or of the only one that begins so. In it, each old word is replaced by the
// new one that follows it.
func (p *Page) Command(t testing.TB, prefix string, oldnew ...string) []string {
	t.Helper()
	var found []string
	for command := range p.commands {
		if strings.HasPrefix(command, prefix+" ") {
			found = append(found, command)
		}
	}
	if _, exact := p.commands[prefix]; exact {
		found = []string{prefix}
	}
	if len(found) != 1 {
		t.Fatalf("%s has %d commands that begin with %q, must have one: %q", p.path, len(found), prefix, found)
	}
	p.commands[found[0]] = true
	words := strings.Fields(found[0])
	for i := range words {
		words[i] = strings.NewReplacer(oldnew...).Replace(words[i])
	}
	return words
}

// Done fails the test if a command of the page was not used.
func (p *Page) Done(t testing.TB) {
	t.Helper()
	for command, used := range p.commands {
		if !used {
			t.Errorf("%s: the command %q was not run", p.path, command)
		}
	}
}
