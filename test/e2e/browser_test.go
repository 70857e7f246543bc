// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

var findBrowser = sync.OnceValues(func() (string, error) {
	cmd := exec.Command(filepath.Join(shared.Root, "hack", "ensure-browser.sh"))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
})

// browser shows one page in a window of its own, without network.
type browser struct {
	*testing.T
	width, height int
	dark          bool
}

func (b browser) call(page string, args ...string) string {
	b.Helper()
	program, err := findBrowser()
	if err != nil {
		b.Fatal(err)
	}
	profile := b.TempDir()
	all := []string{
		"--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
		"--disable-sync", "--disable-extensions", "--disable-dev-shm-usage", "--hide-scrollbars", "--force-device-scale-factor=1", "--user-data-dir=" + profile,
		// Any request over the network would fail.
		"--proxy-server=127.0.0.1:9", "--proxy-bypass-list=<-loopback>",
		fmt.Sprintf("--window-size=%d,%d", b.width, b.height),
	}
	if b.dark {
		all = append(all, "--blink-settings=preferredColorScheme=0")
	}
	ctx, cancel := context.WithTimeout(context.Background(), framework.StepTimeout())
	defer cancel()
	cmd := exec.CommandContext(ctx, program, append(append(all, args...), "file://"+page)...)
	cmd.Env = append(os.Environ(), "HOME="+profile)
	cmd.WaitDelay = 5 * time.Second
	var messages strings.Builder
	cmd.Stderr = &messages
	out, err := cmd.Output()
	if err != nil {
		b.Fatalf("%s: %v\n%s", program, err, messages.String())
	}
	return string(out)
}

// picture returns what the page looks like.
func (b browser) picture(page string) image.Image {
	b.Helper()
	path := filepath.Join(b.TempDir(), "page.png")
	b.call(page, "--screenshot="+path)
	file, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	picture, err := png.Decode(file)
	if err != nil {
		b.Fatal(err)
	}
	if got := picture.Bounds().Dx(); got != b.width {
		b.Fatalf("the picture is %d pixels wide, want %d", got, b.width)
	}
	return picture
}

// dom returns the page as the browser has it after it was loaded.
func (b browser) dom(page string) string {
	b.Helper()
	return b.call(page, "--dump-dom")
}

// ask runs a script in a copy of the page, which forbids scripts itself, and decodes what the script returns.
func (b browser) ask(page, script string, answer any) {
	b.Helper()
	content, err := os.ReadFile(page)
	if err != nil {
		b.Fatal(err)
	}
	const forbid = `http-equiv="Content-Security-Policy"`
	text := strings.Replace(string(content), forbid, `name="was-policy"`, 1)
	if text == string(content) {
		b.Fatalf("the page has no %s", forbid)
	}
	text += fmt.Sprintf("<script>document.title = 'answer' + JSON.stringify((() => { %s })()) + 'end'</script>", script)
	copied := filepath.Join(b.TempDir(), "asked.html")
	if err := os.WriteFile(copied, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	_, found, _ := strings.Cut(b.dom(copied), "<title>answer")
	found, _, complete := strings.Cut(found, "end</title>")
	if !complete {
		b.Fatal("the script did not run")
	}
	if err := json.Unmarshal([]byte(html.UnescapeString(found)), answer); err != nil {
		b.Fatalf("%v: %s", err, found)
	}
}
