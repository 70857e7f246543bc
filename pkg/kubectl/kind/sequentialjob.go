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
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/tree"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/why"
)

// SequentialJob is the kind SequentialJob.
var SequentialJob = Kind{
	Kind: cli.SequentialJob,
	Tree: tree.SequentialJob, Timeline: timeline.SequentialJob, Logs: logs.SequentialJob, Why: why.SequentialJob,
	Actions: action.SequentialJob{}, Preview: preview.SequentialJob, Flags: complete.SequentialJob, Events: events.SequentialJob,
}
