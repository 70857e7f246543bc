// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"fmt"
	"io"
	"sync"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// palette are the colors of ranks. Red is left to errors.
var palette = []cli.Color{"36", "33", "32", "35", "34", "96", "93", "92", "95", "94"}

// sink writes lines of many containers, one at a time and each with the rank that it comes from.
type sink struct {
	out, errOut io.Writer
	terminal    cli.Terminal

	lock sync.Mutex
	// colors has the color of each rank, given in the order in which ranks are first seen.
	colors map[string]cli.Color
	err    error
	// broken is closed once nothing can be written any more, for the reason in err.
	broken chan struct{}
}

func newSink(out, errOut io.Writer, terminal cli.Terminal) *sink {
	return &sink{out: out, errOut: errOut, terminal: terminal, colors: map[string]cli.Color{}, broken: make(chan struct{})}
}

// prefix is what the lines of a rank begin with. Ranks keep their colors.
func (s *sink) prefix(rank string) string {
	s.lock.Lock()
	defer s.lock.Unlock()
	color, found := s.colors[rank]
	if !found {
		color = palette[len(s.colors)%len(palette)]
		s.colors[rank] = color
	}
	return s.terminal.Paint(color, "["+rank+"]") + " "
}

// line writes a line, which ends with a newline, in one call.
func (s *sink) line(prefix string, line []byte) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.err != nil {
		return s.err
	}
	text := make([]byte, 0, len(prefix)+len(line))
	text = append(append(text, prefix...), line...)
	if _, s.err = s.out.Write(text); s.err != nil {
		close(s.broken)
	}
	return s.err
}

// note says something that is not from a log.
func (s *sink) note(format string, args ...any) {
	s.lock.Lock()
	defer s.lock.Unlock()
	fmt.Fprintln(s.errOut, cli.Clean(fmt.Sprintf(format, args...)))
}
