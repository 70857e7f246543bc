// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package disk lets the disk below the embedded etcd fail while clients write through kube-apiserver: synchronization fails, the
// space ends, or every write takes long. The server must end with a line that says why, or be slow; after it was started again on the
// same directory, nothing may be missing that it had acknowledged.
//
// System calls of the running server fail because strace(1) replaces their results. It comes from hack/ensure-strace.sh.
// The space ends in a file system in memory of a few megabytes, which only root can mount.
package disk

import (
	"flag"
	"testing"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

var seed = flag.Uint64("seed", uint64(time.Now().UnixNano()), "seed of all choices of clients")

// plane is the main cluster of all tests of this package.
var plane *framework.ControlPlane

func TestMain(m *testing.M) {
	flag.Parse()
	framework.Main(m, "disk", func(p *framework.ControlPlane) { plane = p })
}
