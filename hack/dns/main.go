// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Command dns is CoreDNS with the few plugins that a cluster of real nodes needs: with all of them it would take minutes longer to build.
package main

import (
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
)

func main() { coremain.Run() }
