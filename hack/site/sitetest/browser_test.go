// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sitetest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// browser is a Chromium that is driven over its debugging protocol, through two pipes.
type browser struct {
	in      io.Writer
	mu      sync.Mutex
	last    int
	answers map[int]chan message
	// ended is set when the browser has closed its pipe.
	ended    bool
	sessions map[string]*tab
}

// message is an answer or an event of the protocol.
type message struct {
	ID        int             `json:"id"`
	Method    string          `json:"method"`
	SessionID string          `json:"sessionId"`
	Params    json.RawMessage `json:"params"`
	Result    json.RawMessage `json:"result"`
	Error     *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// startBrowser starts the browser that hack/ensure-browser.sh finds; it ends with the test.
func startBrowser(t *testing.T) *browser {
	t.Helper()
	cmd := exec.Command(filepath.Join(root, "hack", "ensure-browser.sh"))
	cmd.Stderr = os.Stderr
	program, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	profile := t.TempDir()
	theirIn, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(strings.TrimSpace(string(program)),
		"--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
		"--disable-sync", "--disable-extensions", "--disable-dev-shm-usage", "--force-device-scale-factor=1", "--user-data-dir="+profile,
		"--remote-debugging-pipe")
	cmd.Env = append(os.Environ(), "HOME="+profile)
	cmd.ExtraFiles = []*os.File{theirIn, theirOut}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirIn.Close()
	theirOut.Close()
	b := &browser{in: in, answers: map[int]chan message{}, sessions: map[string]*tab{}}
	read := make(chan struct{})
	go func() {
		defer close(read)
		b.read(out)
	}()
	t.Cleanup(func() {
		_, _ = b.call("", "Browser.close", nil)
		<-read
		_ = cmd.Wait()
		in.Close()
		out.Close()
	})
	return b
}

// read passes answers to their callers and events to their tabs until the browser ends.
func (b *browser) read(out io.Reader) {
	reader := bufio.NewReader(out)
	for {
		text, err := reader.ReadBytes(0)
		var m message
		if err == nil {
			err = json.Unmarshal(text[:len(text)-1], &m)
		}
		b.mu.Lock()
		if err != nil {
			b.ended = true
			for id, answer := range b.answers {
				close(answer)
				delete(b.answers, id)
			}
			b.mu.Unlock()
			return
		}
		if answer, found := b.answers[m.ID]; found {
			delete(b.answers, m.ID)
			answer <- m
		} else if tab := b.sessions[m.SessionID]; tab != nil {
			tab.note(m)
		}
		b.mu.Unlock()
	}
}

// call sends a command, to a tab if session is not empty, and returns its result.
func (b *browser) call(session, method string, params any) (json.RawMessage, error) {
	answer := make(chan message, 1)
	b.mu.Lock()
	b.last++
	id := b.last
	ended := b.ended
	if !ended {
		b.answers[id] = answer
	}
	b.mu.Unlock()
	if ended {
		return nil, fmt.Errorf("%s: the browser has ended", method)
	}
	command := map[string]any{"id": id, "method": method}
	if params != nil {
		command["params"] = params
	}
	if session != "" {
		command["sessionId"] = session
	}
	text, err := json.Marshal(command)
	if err != nil {
		return nil, err
	}
	if _, err := b.in.Write(append(text, 0)); err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	select {
	case m, open := <-answer:
		switch {
		case !open:
			return nil, fmt.Errorf("%s: the browser has ended", method)
		case m.Error != nil:
			return nil, fmt.Errorf("%s: %s", method, m.Error.Message)
		}
		return m.Result, nil
	case <-time.After(2 * time.Minute):
		return nil, errors.New(method + ": the browser has not answered for two minutes")
	}
}
