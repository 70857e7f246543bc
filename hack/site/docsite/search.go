// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
)

// writeSearchIndex writes the text of all pages as a script, since scripts of pages on a file system can load scripts, but not data.
func writeSearchIndex(pages []page, file string) error {
	type entry struct {
		Path     string      `json:"path"`
		Title    string      `json:"title"`
		Sections [][3]string `json:"sections"`
	}
	entries := make([]entry, 0, len(pages))
	for _, p := range pages {
		e := entry{Path: p.path, Title: p.title}
		for _, s := range p.sections {
			e.Sections = append(e.Sections, [3]string{s.anchor, s.heading, s.text})
		}
		entries = append(entries, e)
	}
	return writeCall(file, "siteSearchIndex", entries)
}

// writeCall writes a script that calls a function.
func writeCall(file, function string, arguments ...any) error {
	var script bytes.Buffer
	script.WriteString(function + "(")
	for i, argument := range arguments {
		if i > 0 {
			script.WriteString(", ")
		}
		encoded, err := json.Marshal(argument)
		if err != nil {
			return fmt.Errorf("writing %s: %w", file, err)
		}
		script.Write(encoded)
	}
	script.WriteString(");\n")
	return os.WriteFile(file, script.Bytes(), 0o644)
}
