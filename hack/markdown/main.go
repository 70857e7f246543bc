// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Command markdown looks in Markdown files for what readers see in another form than its author meant: tables with rows of different
// lengths, lists, tables, links and emphasis that are shown as text, and placeholders that are not shown at all.
package main

import (
	"fmt"
	"os"
)

func main() {
	status := 0
	for _, file := range os.Args[1:] {
		source, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			continue // deleted, and still in the index of git
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			status = 1
			continue
		}
		for _, p := range Check(source) {
			fmt.Fprintf(os.Stderr, "%s:%d: %s\n", file, p.Line, p.Text)
			status = 1
		}
	}
	os.Exit(status)
}
