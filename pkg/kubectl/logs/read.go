// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
)

// opener opens the log of a container.
type opener func(ctx context.Context, s stream, options *corev1.PodLogOptions) (io.ReadCloser, error)

func openerOf(client kubernetes.Interface) opener {
	return func(ctx context.Context, s stream, options *corev1.PodLogOptions) (io.ReadCloser, error) {
		return client.CoreV1().Pods(s.pod.Namespace).GetLogs(s.pod.Name, options).Stream(ctx)
	}
}

// EachLine calls for each line of a log. Lines come whole, however long, and end with a newline.
func EachLine(log io.Reader, call func(line []byte) error) error {
	reader := bufio.NewReaderSize(log, 64<<10)
	for {
		line, err := reader.ReadBytes('\n')
		if len(line) > 0 {
			if err != nil {
				line = append(line, '\n')
			}
			if err := call(line); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// linesAhead is how many lines of a log are read before it is its turn to be printed.
const linesAhead = 1000

// reading is a log on its way to the output.
type reading struct {
	stream
	lines chan []byte
	err   error // once lines is closed
}

// printAll prints logs in their order. So many are read at the same time; those whose turn has not come wait with some lines
// read. It returns how many could not be read.
func printAll(ctx context.Context, streams []stream, options corev1.PodLogOptions, atOnce int, open opener,
	out *sink) (failed int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	readings := make([]*reading, len(streams))
	for i := range streams {
		readings[i] = &reading{stream: streams[i], lines: make(chan []byte, linesAhead)}
	}
	// Slots are taken in order, so that the log whose turn it is always has one.
	slots := make(chan struct{}, atOnce)
	running.Go(func() {
		for _, r := range readings {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				r.err = ctx.Err()
				close(r.lines)
				continue
			}
			running.Go(func() {
				defer func() { <-slots }()
				r.read(ctx, options, open)
			})
		}
	})
	for _, r := range readings {
		prefix := out.prefix(r.rank)
		for line := range r.lines {
			if err := out.line(prefix, line); err != nil {
				return failed, err
			}
		}
		if r.err != nil {
			if ctx.Err() != nil {
				return failed, ctx.Err()
			}
			failed++
			out.note("[%s] the log of pod %s cannot be read: %v", r.rank, r.pod.Name, r.err)
		}
	}
	return failed, nil
}

func (r *reading) read(ctx context.Context, options corev1.PodLogOptions, open opener) {
	defer close(r.lines)
	options.Container = r.container
	log, err := open(ctx, r.stream, &options)
	if err != nil {
		r.err = err
		return
	}
	defer log.Close()
	r.err = EachLine(log, func(line []byte) error {
		select {
		case r.lines <- line:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("reading was given up: %w", ctx.Err())
		}
	})
}
