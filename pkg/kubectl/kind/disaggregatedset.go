// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/why"
)

// DisaggregatedSet is the kind DisaggregatedSet. The other commands take its LeaderWorkerSets.
var DisaggregatedSet = Kind{Kind: cli.DisaggregatedSet, Why: why.DisaggregatedSet}
