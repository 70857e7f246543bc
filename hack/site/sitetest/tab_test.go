// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sitetest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// tab is a page of the browser.
type tab struct {
	*testing.T
	*browser
	session string
	// requests are the addresses that were asked for since the last call of open, and problems what went wrong. The lock of the browser
	// protects both.
	requests, problems []string
	addresses          map[string]string
}

func (b *browser) newTab(t *testing.T) *tab {
	t.Helper()
	p := &tab{T: t, browser: b, addresses: map[string]string{}}
	var target struct{ TargetID string }
	decode(t, p.must("Target.createTarget", map[string]any{"url": "about:blank"}), &target)
	var attached struct{ SessionID string }
	decode(t, p.must("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}), &attached)
	p.session = attached.SessionID
	b.mu.Lock()
	b.sessions[p.session] = p
	b.mu.Unlock()
	for _, domain := range []string{"Page", "Network", "Runtime", "Log"} {
		p.must(domain+".enable", nil)
	}
	t.Cleanup(func() { p.must("Page.close", nil) })
	return p
}

func (p *tab) must(method string, params any) json.RawMessage {
	p.Helper()
	result, err := p.call(p.session, method, params)
	if err != nil {
		p.Fatal(err)
	}
	return result
}

// note remembers requests and what fails; the caller holds the lock.
func (p *tab) note(m message) {
	var event struct {
		RequestID, ErrorText string
		Request              struct{ URL string }
		Response             struct {
			URL    string
			Status int
		}
		ExceptionDetails struct {
			Text      string
			Exception struct{ Description string }
		}
		Entry struct{ Level, Text, URL string }
	}
	if err := json.Unmarshal(m.Params, &event); err != nil {
		p.problems = append(p.problems, err.Error())
		return
	}
	switch m.Method {
	case "Network.requestWillBeSent":
		p.requests = append(p.requests, event.Request.URL)
		p.addresses[event.RequestID] = event.Request.URL
	case "Network.responseReceived":
		if event.Response.Status >= 400 {
			p.problems = append(p.problems, fmt.Sprintf("%s: status %d", event.Response.URL, event.Response.Status))
		}
	case "Network.loadingFailed":
		p.problems = append(p.problems, p.addresses[event.RequestID]+": "+event.ErrorText)
	case "Runtime.exceptionThrown":
		p.problems = append(p.problems, event.ExceptionDetails.Text+" "+event.ExceptionDetails.Exception.Description)
	case "Log.entryAdded":
		if event.Entry.Level == "error" {
			p.problems = append(p.problems, event.Entry.Text+" "+event.Entry.URL)
		}
	}
}

// size sets the size of the window, in CSS pixels.
func (p *tab) size(width, height int) {
	p.Helper()
	p.must("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})
}

func (p *tab) scheme(name string) {
	p.Helper()
	p.must("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": name}}})
}

// open loads a page, with all that belongs to it, and the list of versions.
func (p *tab) open(address string) {
	p.Helper()
	p.mu.Lock()
	p.requests, p.problems = nil, nil
	p.mu.Unlock()
	var navigated struct{ ErrorText string }
	decode(p.T, p.must("Page.navigate", map[string]any{"url": address}), &navigated)
	if navigated.ErrorText != "" {
		p.Fatalf("%s: %s", address, navigated.ErrorText)
	}
	p.loaded()
}

// loaded waits until the page is complete.
func (p *tab) loaded() {
	p.Helper()
	p.until(`document.readyState === "complete" && document.querySelector(".versions [aria-current]") !== null`)
}

// until waits until an expression is true, for a minute at most. It may be evaluated in the page that is left, or between two pages.
func (p *tab) until(expression string) {
	p.Helper()
	problem := errors.New("it is false")
	for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(10 * time.Millisecond) {
		var done bool
		err := p.evaluate("Boolean("+expression+")", &done)
		if done {
			return
		}
		if err != nil {
			problem = err
		}
	}
	p.Fatalf("not true after a minute: %s: %v", expression, problem)
}

// ask evaluates an expression in the page.
func (p *tab) ask(expression string, answer any) {
	p.Helper()
	if err := p.evaluate(expression, answer); err != nil {
		p.Fatalf("%s\n%v", expression, err)
	}
}

func (p *tab) evaluate(expression string, answer any) error {
	result, err := p.call(p.session, "Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true})
	if err != nil {
		return err
	}
	var evaluated struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Exception struct{ Description string }
		}
	}
	if err := json.Unmarshal(result, &evaluated); err != nil {
		return err
	}
	if evaluated.ExceptionDetails != nil {
		return errors.New(evaluated.ExceptionDetails.Exception.Description)
	}
	return json.Unmarshal(evaluated.Result.Value, answer)
}

// press presses and releases a key, which is typed if it is a character.
func (p *tab) press(key string, code int) {
	p.Helper()
	down := map[string]any{"type": "keyDown", "key": key, "windowsVirtualKeyCode": code}
	if len(key) == 1 {
		down["text"] = key
	} else if key == "Enter" {
		down["text"] = "\r"
	}
	p.must("Input.dispatchKeyEvent", down)
	p.must("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key, "windowsVirtualKeyCode": code})
}

// picture saves what the window shows to _output/docs-pictures.
func (p *tab) picture(name string) {
	p.Helper()
	var shot struct{ Data string }
	decode(p.T, p.must("Page.captureScreenshot", map[string]any{"format": "png"}), &shot)
	content, err := base64.StdEncoding.DecodeString(shot.Data)
	if err != nil {
		p.Fatal(err)
	}
	directory := filepath.Join(root, "_output", "docs-pictures")
	if err := os.MkdirAll(directory, 0o755); err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(directory, name+".png"), content, 0o644); err != nil {
		p.Fatal(err)
	}
}

func decode(t *testing.T, text []byte, value any) {
	t.Helper()
	if err := json.Unmarshal(text, value); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}
