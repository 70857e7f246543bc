// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// buffer may be written and read at the same time.
type buffer struct {
	lock sync.Mutex
	bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.lock.Lock()
	defer b.lock.Unlock()
	return b.Buffer.Write(p)
}

func (b *buffer) String() string {
	b.lock.Lock()
	defer b.lock.Unlock()
	return b.Buffer.String()
}

func streamsOf(n int) []stream {
	var out []stream
	for i := range n {
		pod := newPod("workers", i, 0, "a")
		out = append(out, stream{pod: pod, container: "main", rank: rank(pod)})
	}
	return out
}

func TestPrintAllKeepsOrderAndLimit(t *testing.T) {
	const pods, lines = 30, 3 * linesAhead
	for _, atOnce := range []int{1, 7, 100} {
		t.Run(fmt.Sprintf("%d at once", atOnce), func(t *testing.T) {
			var open, most atomic.Int32
			opener := func(_ context.Context, s stream, _ *corev1.PodLogOptions) (io.ReadCloser, error) {
				for n := open.Add(1); ; {
					if old := most.Load(); n <= old || most.CompareAndSwap(old, n) {
						break
					}
				}
				var b strings.Builder
				for i := range lines {
					fmt.Fprintf(&b, "%s line %d\n", s.rank, i)
				}
				return closer{strings.NewReader(strings.TrimSuffix(b.String(), "\n")), func() { open.Add(-1) }}, nil
			}
			var out, errOut buffer
			failed, err := printAll(t.Context(), streamsOf(pods), corev1.PodLogOptions{}, atOnce, opener, newSink(&out, &errOut, cli.Terminal{}))
			if err != nil || failed != 0 {
				t.Fatalf("%d failed, %v", failed, err)
			}
			var want strings.Builder
			for i := range pods {
				for j := range lines {
					fmt.Fprintf(&want, "[workers-%d-0] workers-%[1]d-0 line %d\n", i, j)
				}
			}
			if out.String() != want.String() {
				t.Error("the lines are not all there, in order")
			}
			if got := int(most.Load()); got > atOnce {
				t.Errorf("%d logs were open at once, the limit is %d", got, atOnce)
			}
		})
	}
}

type closer struct {
	io.Reader
	close func()
}

func (c closer) Close() error {
	c.close()
	return nil
}

func TestPrintAllSkipsUnreadableLogs(t *testing.T) {
	opener := func(_ context.Context, s stream, _ *corev1.PodLogOptions) (io.ReadCloser, error) {
		if s.rank == "workers-1-0" {
			return nil, errors.New("the node\x1b[2J does not answer")
		}
		return io.NopCloser(strings.NewReader("well\n")), nil
	}
	var out, errOut buffer
	failed, err := printAll(t.Context(), streamsOf(3), corev1.PodLogOptions{}, 2, opener, newSink(&out, &errOut, cli.Terminal{}))
	if failed != 1 || err != nil {
		t.Errorf("%d failed, %v; want 1 and no error", failed, err)
	}
	if diff := cmp.Diff("[workers-0-0] well\n[workers-2-0] well\n", out.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("[workers-1-0] the log of pod train-workers-1-0-a cannot be read: the node[2J does not answer\n", errOut.String()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestPrintAllStopsOnClosedOutput(t *testing.T) {
	opener := func(ctx context.Context, _ stream, _ *corev1.PodLogOptions) (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(strings.NewReader("a line\n"), forever{ctx})), nil
	}
	_, err := printAll(t.Context(), streamsOf(3), corev1.PodLogOptions{}, 2, opener, newSink(brokenPipe{}, io.Discard, cli.Terminal{}))
	if !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("want the error of the output, got %v", err)
	}
}

// forever has nothing to read until it is given up.
type forever struct{ ctx context.Context }

func (f forever) Read([]byte) (int, error) {
	<-f.ctx.Done()
	return 0, f.ctx.Err()
}

func TestRanksHaveColors(t *testing.T) {
	s := newSink(io.Discard, io.Discard, cli.Terminal{Colors: true})
	first, second := s.prefix("a-0-0"), s.prefix("a-0-1")
	if first != "\x1b[36m[a-0-0]\x1b[0m " || second != "\x1b[33m[a-0-1]\x1b[0m " || s.prefix("a-0-0") != first {
		t.Errorf("got %q, %q, and then %q", first, second, s.prefix("a-0-0"))
	}
}

func TestPosition(t *testing.T) {
	p := &Position{}
	var got []string
	for _, line := range []string{
		"2026-03-09T12:00:00.1Z one\n", "2026-03-09T12:00:00.2Z  two\n", "2026-03-09T12:00:00.1Z one\n", "2026-03-09T12:00:00.2Z  two\n",
		"2026-03-09T12:00:01Z \n", "no time\n",
	} {
		if shown := p.Next([]byte(line)); shown != nil {
			got = append(got, string(shown))
		}
	}
	if diff := cmp.Diff([]string{"one\n", " two\n", "\n", "no time\n"}, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}
