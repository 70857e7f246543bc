// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// vulnerabilities fails if programs contain code with a known vulnerability. The database of vulnerabilities is a Go module, which
// go.mod pins, so that the same programs give the same result until it is updated.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

func main() {
	exceptions := flag.String("exceptions", "exceptions.txt", "file with vulnerabilities that are accepted")
	oldestGo := flag.String("oldest-go", "", "oldest version of Go that may build the programs, such as 1.26.0 (required)")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: vulnerabilities -oldest-go VERSION [-exceptions FILE] PROGRAM...")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 || *oldestGo == "" {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(context.Background(), os.Stdout, *exceptions, *oldestGo, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "vulnerabilities:", err)
		os.Exit(1)
	}
}

// run scans the programs and compares what they reach with the exceptions.
func run(ctx context.Context, out io.Writer, exceptionsFile, oldestGo string, programs []string) error {
	text, err := os.ReadFile(exceptionsFile)
	if err != nil {
		return err
	}
	exceptions, err := parseExceptions(filepath.Base(exceptionsFile), string(text))
	if err != nil {
		return err
	}
	database, err := databaseDirectory(ctx)
	if err != nil {
		return err
	}
	results := newResults()
	for _, program := range programs {
		if err := results.scan(ctx, database, program); err != nil {
			return err
		}
	}
	return compare(out, results, exceptions, oldestGo)
}

// databaseDirectory returns the directory with a file for each vulnerability, and downloads the module of the database if needed.
func databaseDirectory(ctx context.Context) (string, error) {
	command := exec.CommandContext(ctx, "go", "mod", "download", "-json", "golang.org/x/vulndb")
	output, err := command.Output()
	var module struct{ Dir, Error string }
	if decodeErr := json.Unmarshal(output, &module); decodeErr != nil {
		return "", fmt.Errorf("downloading the database of vulnerabilities: %w", errors.Join(err, decodeErr))
	}
	if module.Error != "" {
		return "", fmt.Errorf("downloading the database of vulnerabilities: %s", module.Error)
	}
	return filepath.Join(module.Dir, "data", "osv"), nil
}
