// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/action"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/complete"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/events"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/logs"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/preview"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/timeline"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/top"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/tree"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/why"
)

// LeaderWorkerSet is the kind LeaderWorkerSet.
var LeaderWorkerSet = Kind{
	Kind: cli.LeaderWorkerSet,
	Tree: tree.LeaderWorkerSet, Top: top.LeaderWorkerSet, Timeline: timeline.LeaderWorkerSet, Why: why.LeaderWorkerSet,
	Logs: logs.LeaderWorkerSet, Events: events.LeaderWorkerSet,
	Actions: action.LeaderWorkerSet{}, Preview: preview.LeaderWorkerSet, Flags: complete.LeaderWorkerSet,
}
