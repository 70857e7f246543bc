// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Command jobset-restart-agent runs in pods of JobSets that restart in place. It holds the worker of its pod back until
// the workers of all pods of the set can begin, and has the containers of the pod restarted when those of another pod
// are (docs/in-place-restart.md).
package main

import (
	"os"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/restartagent"
)

func main() { os.Exit(restartagent.Main(os.Args[1:])) }
