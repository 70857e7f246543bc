// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// appendLine adds a line with the name of the host and $LINE to a file, and prints the file. It is an error if the file
// does not have that many lines then; any number is good if lines is "any".
func appendLine(path, lines string) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(file, strings.TrimSpace(host+" "+os.Getenv("LINE")))
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	fmt.Print(string(content))
	if got := strconv.Itoa(strings.Count(string(content), "\n")); lines != "any" && got != lines {
		return fmt.Errorf("%s has %s lines, want %s", path, got, lines)
	}
	return nil
}

// count appends the Unix time to a file every second until the context ends.
func count(ctx context.Context, path string) (int, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return 1, err
	}
	defer file.Close()
	for ticks := time.Tick(time.Second); ; {
		if _, err := fmt.Fprintf(file, "%.3f\n", float64(time.Now().UnixMilli())/1000); err != nil {
			return 1, err
		}
		select {
		case <-ticks:
		case <-ctx.Done():
			return terminated, ctx.Err()
		}
	}
}
