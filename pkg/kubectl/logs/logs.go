// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package logs is `kubectl jobset logs`: the logs of all pods of a set at once. Which containers are wanted is decided from
// a snapshot (select.go, jobset.go); their logs are read in parallel and printed in the order of the ranks (read.go), or
// followed as they are written (follow.go, watch.go).
package logs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/complete"
)

const (
	// linesOfSeveral is the default number of lines of each log if there are several.
	linesOfSeveral = 10
	// tailBySelection stands for all lines of one log, and linesOfSeveral of each of several.
	tailBySelection = -2
)

const long = `Prints the logs of all pods of a JobSet, read in parallel and in the order of the ranks. Each line begins with
the rank of its pod: [replicatedJob-jobIndex-podIndex].

Of a SequentialJob (sqj/NAME), the logs of one step are printed: the current one, the one that failed, or the last. --step chooses
another one, and --all-steps prints those of all in order. Each line begins with the name of the step; -f follows all steps from the
current one on, unless --step is given.

Of a LeaderWorkerSet (lws/NAME), the logs of all groups are printed, unless --group or --worker is given. Each line begins with
the indexes of the group and of the pod in it: [group-worker]. The leader has the index 0.

With -f, lines are printed as they are written, also those of pods that a restart creates, until the set has finished or is deleted.

The last 10 lines of each of several logs are printed, unless --tail or --since is set.`

const example = `  # The last lines of the log of every pod of the set "train"
  kubectl jobset logs train

  # The log of the container that failed first
  kubectl jobset logs train --first-failed

  # All lines of the second Job of the workers
  kubectl jobset logs train --replicated-job workers --job-index 1 --tail -1

  # Follow the leader, through restarts
  kubectl jobset logs train --replicated-job leader -f

  # The step "transform" of the sequence "etl"
  kubectl jobset logs sqj/etl --step transform

  # Follow all leaders of the LeaderWorkerSet "vllm"
  kubectl jobset logs lws/vllm --worker 0 -f

  # The pods of an earlier attempt that still exist
  kubectl jobset logs train --attempt 2`

type options struct {
	selection
	factory     *cli.Factory
	follow      bool
	timestamps  bool
	firstFailed bool
	attempt     int
	tail        int64
	since       time.Duration
	maxRequests int
}

// Loader reads an object of a kind and the pods that belong to it.
type Loader func(ctx context.Context, c *cli.Clients, name string) (*Source, error)

// NewCommand returns `kubectl jobset logs`.
func NewCommand(f *cli.Factory, kinds []cli.For[Loader]) *cobra.Command {
	o := &options{factory: f}
	cmd := &cobra.Command{
		Use:               "logs NAME",
		Short:             "Print the logs of all pods of a JobSet or a LeaderWorkerSet, or of a step of a SequentialJob",
		Long:              long,
		Example:           example,
		ValidArgsFunction: complete.Names(f, kinds),
		RunE: cli.ReadObject(f, kinds, func(cmd *cobra.Command) error {
			err := o.validate(cmd.Flags().Changed)
			o.complete(cmd.Flags().Changed)
			return err
		}, func(ctx context.Context, kind cli.For[Loader], name string) error { return o.run(ctx, kind.Do, name) }),
	}
	o.addFlags(cmd)
	return cmd
}

func (o *options) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.replicatedJob, complete.ReplicatedJobFlag, "", "Print only logs of this replicatedJob.")
	flags.IntVar(&o.jobIndex, "job-index", -1, "Print only logs of the Job with this index in its replicatedJob. -1 means all Jobs.")
	flags.StringVar(&o.step, complete.StepFlag, "", "Print only logs of this step of a sequence, by name or index. The default is the "+
		"current step, the one that failed, or the last.")
	flags.StringVar(&o.group, "group", "", "Print only logs of the group with this index in a LeaderWorkerSet.")
	flags.StringVar(&o.worker, "worker", "", "Print only logs of the pods with this index in their groups of a LeaderWorkerSet. 0 means "+
		"the leaders.")
	flags.BoolVar(&o.allSteps, "all-steps", false, "Print the logs of all steps of a sequence, in order.")
	flags.BoolVar(&o.firstFailed, "first-failed", false, "Print only the log of what failed first: the recorded first cause, or else the "+
		"first failed pod that exists.")
	flags.IntVar(&o.attempt, "attempt", 0, "Print only logs of pods that ran in the attempt with this number. 0 means all pods that exist.")
	flags.BoolVarP(&o.follow, "follow", "f", false, "Print lines as they are written, until the set has finished.")
	flags.Int64Var(&o.tail, "tail", -1, "Number of lines to print from the end of each log. -1 means all. The default is all lines of a "+
		"single log, and 10 of each of several logs.")
	flags.DurationVar(&o.since, "since", 0, "Print only lines that are newer than this duration, like 5s, 2m or 3h.")
	flags.StringVarP(&o.container, "container", "c", "", "Container to print the log of. The default is the container that the annotation "+
		defaultContainerKey+" names, or else the first one.")
	flags.BoolVar(&o.allContainers, "all-containers", false, "Print the logs of all containers of the pods.")
	flags.BoolVarP(&o.previous, "previous", "p", false, "Print the log of the previous run of the container.")
	flags.BoolVar(&o.timestamps, "timestamps", false, "Print the time of each line.")
	flags.IntVar(&o.maxRequests, "max-log-requests", 50, "Number of logs to read at the same time. With -f, more logs than these are an "+
		"error.")
}

// complete sets the default of --tail, which depends on --since and on the number of logs.
func (o *options) complete(changed func(string) bool) {
	if !changed("tail") && o.since == 0 {
		o.tail = tailBySelection
	}
}

func (o *options) validate(changed func(string) bool) error {
	switch {
	case o.jobIndex < -1:
		return errors.New("--job-index: must be 0 or more, or -1 for all")
	case o.attempt < 0 || changed("attempt") && o.attempt == 0:
		return errors.New("--attempt: must be 1 or more; `kubectl jobset timeline NAME` lists the attempts")
	case o.tail < -1:
		return errors.New("--tail: must be 0 or more, or -1 for all lines")
	case o.since < 0 || changed("since") && o.since < time.Second:
		return errors.New("--since: must be a second or more")
	case o.maxRequests < 1:
		return errors.New("--max-log-requests: must be 1 or more")
	}
	return o.validateCombinations()
}

func (o *options) validateCombinations() error {
	const follow = "-f, which shows what comes next"
	for _, c := range []struct {
		flag, other string
		both        bool
	}{
		{"container", "--all-containers", o.container != "" && o.allContainers},
		{"first-failed", follow, o.follow && o.firstFailed},
		{"step", "--all-steps", o.step != "" && o.allSteps},
		{"attempt", follow, o.follow && o.attempt > 0},
		{"previous", follow, o.follow && o.previous},
	} {
		if c.both {
			return fmt.Errorf("--%s: cannot be used with %s; leave one of them out", c.flag, c.other)
		}
	}
	return nil
}

// lines is how many lines are to be shown of so many logs. nil for all.
func (o *options) lines(logs int) *int64 {
	switch {
	case o.tail >= 0:
		return ptr.To(o.tail)
	case o.tail == tailBySelection && logs > 1:
		return ptr.To[int64](linesOfSeveral)
	}
	return nil
}

func (o *options) run(ctx context.Context, load Loader, name string) error {
	clients, err := o.factory.Clients()
	if err != nil {
		return err
	}
	source, err := load(ctx, clients, name)
	if err != nil {
		return err
	}
	out := newSink(o.factory.Out, o.factory.ErrOut, o.factory.Terminal())
	chosen, err := o.choose(source)
	if err != nil {
		return err
	}
	for _, note := range chosen.notes {
		out.note("%s", note)
	}
	options := corev1.PodLogOptions{Previous: o.previous, Timestamps: o.timestamps, TailLines: o.lines(len(chosen.streams))}
	if o.since > 0 {
		options.SinceSeconds = ptr.To(int64(o.since.Seconds()))
	}
	if o.follow {
		if len(chosen.streams) > o.maxRequests {
			return fmt.Errorf("--max-log-requests: -f would read %d logs at the same time, and %d is the limit; narrow them with "+
				"--replicated-job and --job-index, or --group and --worker, or raise it", len(chosen.streams), o.maxRequests)
		}
		return follow(ctx, clients, source, newFollower(o.selection, options, o.maxRequests, openerOf(clients.Kube), out))
	}
	if len(chosen.streams) == 0 {
		return cli.ErrSilent
	}
	failed, err := printAll(ctx, chosen.streams, options, o.maxRequests, openerOf(clients.Kube), out)
	if err == nil && failed > 0 {
		return cli.ErrSilent
	}
	return err
}
