// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package action

import (
	"slices"
	"time"

	"github.com/spf13/cobra"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/complete"
)

// options are the flags of an action.
type options struct {
	action action
	output cli.Output

	reason  string
	attempt int32
	dryRun  string
	wait    bool
	timeout time.Duration

	scope, replicatedJob string
	jobIndex             int32
	counts, force        bool
	maxRestarts          int32
	fromStep, step       string
	yes                  bool

	group, restarts        int32
	generation, toRevision int64
}

// Values of --dry-run.
const (
	dryRunNone   = "none"
	dryRunServer = "server"
)

// formatName is the format that names the objects on which the command acted.
const formatName = "name"

// NewRestart returns `kubectl jobset restart`.
func NewRestart(f *cli.Factory, targets []cli.For[Target]) *cobra.Command {
	o := &options{action: restart}
	cmd := newCommand(f, targets, o, "Restart a JobSet, a part of it, the current step of a SequentialJob, or groups of a LeaderWorkerSet",
		`Restart JobSets: all Jobs, those of one replicatedJob, or one Job. Their pods are replaced, and the
set records who requested it, when and why. It counts towards maxRestarts of the failure policy only if requested.

The command restarts the attempt that runs when it reads the set, or the one that --attempt names. If another attempt has begun
in the meantime, nothing is restarted. If several people restart the same attempt, the set restarts once. What was restarted on
request and is not ready yet is not restarted again, unless --force is set.

Of a SequentialJob, the step that runs is stopped and run again.

Of a LeaderWorkerSet, all groups are recreated, so many at a time as in a rolling update, or the one that --group names, at
once. A group that waits after failures begins again. If the restart is requested again before it is complete, the groups are
recreated once.

The command requires permission to create jobsets/restart, sequentialjobs/restart or leaderworkersets/restart, but not to edit
the objects.`, `  # Restart the whole set
  kubectl jobset restart train --reason "link down on rack 7"

  # Restart one Job, and follow until all are ready again
  kubectl jobset restart train --replicated-job workers --job-index 3 --wait

  # Restart attempt 2, once, however often this is called
  kubectl jobset restart train --attempt 2

  # Run the current step of a sequence again
  kubectl jobset restart sqj/nightly

  # Recreate one group of a LeaderWorkerSet
  kubectl jobset restart lws/llm --group 3 --wait`)
	flags := cmd.Flags()
	flags.StringVar(&o.scope, "scope", "", "What to restart: JobSet, ReplicatedJob or Job. By default, follows from the other flags.")
	flags.StringVar(&o.replicatedJob, complete.ReplicatedJobFlag, "", "Restart only this replicatedJob.")
	flags.Int32Var(&o.jobIndex, "job-index", 0, "Restart only this Job of the replicatedJob.")
	flags.BoolVar(&o.counts, "count-towards-max-restarts", false, "Count the restart towards maxRestarts of the failure policy.")
	flags.Int32Var(&o.group, groupFlag, 0, "Restart only the group with this index. For LeaderWorkerSets.")
	flags.Int32Var(&o.restarts, restartsFlag, 0, "Act only if this is the number of restarts of the group, as in status.groups. For "+
		"LeaderWorkerSets.")
	flags.BoolVar(&o.force, "force", false, "Restart even if the current attempt was requested for the same target and is not ready yet.")
	scopes := []cobra.Completion{string(batchv1alpha1.RestartScopeJobSet), string(batchv1alpha1.RestartScopeReplicatedJob),
		string(batchv1alpha1.RestartScopeJob)}
	_ = cmd.RegisterFlagCompletionFunc("scope", cobra.FixedCompletions(scopes, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// NewSuspend returns `kubectl jobset suspend`.
func NewSuspend(f *cli.Factory, targets []cli.For[Target]) *cobra.Command {
	return newCommand(f, targets, &options{action: suspend}, "Suspend a JobSet or a SequentialJob",
		`Suspend JobSets: their pods are deleted, and the Jobs stay, suspended. The set records who requested it, when and why.
Of a SequentialJob, the step that runs is suspended, and no other is started.

The command requires permission to create jobsets/suspend or sequentialjobs/suspend, but not to edit the objects. A JobSet that
a queue manages is suspended by the queue.`, `  # Suspend a set, and wait until its pods are gone
  kubectl jobset suspend train --reason "the cluster is drained tonight" --wait`)
}

// NewResume returns `kubectl jobset resume`.
func NewResume(f *cli.Factory, targets []cli.For[Target]) *cobra.Command {
	return newCommand(f, targets, &options{action: resume}, "Resume a suspended JobSet or SequentialJob, or a paused LeaderWorkerSet",
		`Resume suspended JobSets and SequentialJobs, and the rolling updates of paused LeaderWorkerSets. The object records who
requested it, when and why.

The command requires permission to create jobsets/resume, sequentialjobs/resume or leaderworkersets/resume, but not to edit the
objects. A JobSet that a queue manages is resumed by the queue.`, `  # Resume two sets
  kubectl jobset resume train eval

  # Resume a set, and wait for up to ten minutes until all its Jobs are ready
  kubectl jobset resume train --wait --timeout 10m`)
}

// NewCancel returns `kubectl jobset cancel`.
func NewCancel(f *cli.Factory, targets []cli.For[Target]) *cobra.Command {
	o := &options{action: cancel}
	cmd := newCommand(f, targets, o, "Cancel a JobSet or a SequentialJob and keep the object",
		`Cancel JobSets and SequentialJobs: they fail with the reason Cancelled, their active Jobs are deleted, and the objects with
their history stay. On a terminal, the command asks for confirmation. What was cancelled can be run again with kubectl jobset
retry.

The command requires permission to create jobsets/cancel or sequentialjobs/cancel, but not to edit the objects.`, `  # Cancel a set
  kubectl jobset cancel train --reason "wrong data set"

  # Cancel without confirmation, and wait until its Jobs are gone
  kubectl jobset cancel train --yes --wait`)
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "Do not ask for confirmation.")
	return cmd
}

// NewRetry returns `kubectl jobset retry`.
func NewRetry(f *cli.Factory, targets []cli.For[Target]) *cobra.Command {
	o := &options{action: retry}
	cmd := newCommand(f, targets, o, "Run a failed JobSet or SequentialJob again",
		`Retry failed JobSets: they run again from a new attempt, and the history is kept. The retry itself does not count towards
maxRestarts of the failure policy; --max-restarts grants additional restarts.

A SequentialJob runs again from the step that failed, or from the one that --from-step names.

The command requires permission to create jobsets/retry or sequentialjobs/retry, but not to edit the objects.`, `  # Run a failed set again
  kubectl jobset retry train --reason "the storage is back"

  # Also let it restart three more times by itself
  kubectl jobset retry train --max-restarts 3 --wait

  # Run a failed sequence again, from the step "prepare"
  kubectl jobset retry sqj/nightly --from-step prepare`)
	cmd.Flags().Int32Var(&o.maxRestarts, "max-restarts", 0, "Number of additional restarts to grant. For JobSets.")
	cmd.Flags().StringVar(&o.fromStep, fromStepFlag, "", "Name or index of the step from which to run again. Defaults to the one that "+
		"failed. For SequentialJobs.")
	return cmd
}

// NewRollback returns `kubectl jobset rollback`.
func NewRollback(f *cli.Factory, targets []cli.For[Target]) *cobra.Command {
	o := &options{action: rollback}
	cmd := newCommand(f, targets, o, "Return a LeaderWorkerSet to a former revision",
		`Return LeaderWorkerSets to a former revision: spec.leaderWorkerTemplate and spec.networkConfig become those of the revision,
and the groups are replaced as after an edit. Everything else of the spec stays.

While an update is under way, the revisions that groups have are kept, and the last ten others. When it is complete, as many
former revisions are kept as spec.revisionHistoryLimit says. That is 0 by default, as upstream keeps none: set it before the
next update to be able to return later.

The command requires permission to create leaderworkersets/rollback, but not to edit the objects or to read their revisions.`,
		`  # Return to the revision before the current one, and wait until all groups are updated
  kubectl jobset rollback lws/llm --wait

  # Which revisions are there, and since when?
  kubectl jobset timeline lws/llm

  # Keep the last 3 former revisions from the next update on
  kubectl patch leaderworkerset llm --type=merge -p '{"spec":{"revisionHistoryLimit":3}}'

  # Return to a revision
  kubectl jobset rollback lws/llm --to-revision 3 --reason "latency"`)
	cmd.Flags().Int64Var(&o.toRevision, "to-revision", 0, "Number of the revision to return to. 0 for the one before the current one.")
	return cmd
}

// NewPause returns `kubectl jobset pause`.
func NewPause(f *cli.Factory, targets []cli.For[Target]) *cobra.Command {
	return newCommand(f, targets, &options{action: pause}, "Pause the rolling update of a LeaderWorkerSet",
		`Pause the rolling updates of LeaderWorkerSets: no further group is replaced until the set is resumed. Groups that fail are
still recreated, each with its own revision, and the set can be scaled. The set records who requested it, when and why.

The command requires permission to create leaderworkersets/pause, but not to edit the objects.`, `  # Pause a rolling update
  kubectl jobset pause lws/llm --reason "errors of the new version"`)
}

// having returns the kinds that have an action.
func having(targets []cli.For[Target], action string) []cli.For[Target] {
	return slices.DeleteFunc(slices.Clone(targets), func(t cli.For[Target]) bool { return !t.Do.Has(action) })
}

func newCommand(f *cli.Factory, targets []cli.For[Target], o *options, short, long, example string) *cobra.Command {
	targets = having(targets, o.action.name)
	cmd := &cobra.Command{
		Use:               o.action.name + " NAME...",
		Short:             short,
		Long:              long,
		Example:           example,
		ValidArgsFunction: severalSets(complete.Names(f, targets)),
		RunE: func(cmd *cobra.Command, args []string) error {
			given, err := arguments(targets, args)
			if err != nil {
				return err
			}
			r, err := o.complete(cmd)
			if err != nil {
				return err
			}
			clients, err := f.Clients()
			if err != nil {
				return err
			}
			objects, err := find(cmd.Context(), cmd, clients, targets, given)
			if err != nil {
				return err
			}
			run := &runner{options: o, streams: f.IOStreams, clients: clients, request: r}
			return run.all(cmd.Context(), objects)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.reason, "reason", "", "Reason for the action, kept in the history of the object. At most 1024 characters.")
	if taken(targets, attemptFlag) {
		flags.Int32Var(&o.attempt, attemptFlag, 0, "Act only if this is the number of the current attempt."+o.attemptDefault())
		flags.StringVar(&o.step, stepFlag, "", "Act only if this is the name of the current step. For SequentialJobs.")
	}
	if taken(targets, generationFlag) {
		flags.Int64Var(&o.generation, generationFlag, 0, "Act only if this is metadata.generation of the object. For LeaderWorkerSets.")
	}
	flags.StringVar(&o.dryRun, "dry-run", dryRunNone, "Must be none or server. With server, the server checks the request and changes "+
		"nothing.")
	flags.BoolVar(&o.wait, "wait", false, "Wait until "+o.action.goal.String()+", and show the progress.")
	flags.DurationVar(&o.timeout, "timeout", 0, "Time limit for --wait, such as 10m. 0 means no limit.")
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions([]cobra.Completion{dryRunNone, dryRunServer},
		cobra.ShellCompDirectiveNoFileComp))
	o.output.AddFlags(cmd, formatName)
	return cmd
}

// taken returns whether a kind takes the flag.
func taken(targets []cli.For[Target], flag string) bool {
	return slices.ContainsFunc(targets, func(t cli.For[Target]) bool { return t.Do.Takes(flag) })
}

func (o *options) attemptDefault() string {
	if o.action.oncePerAttempt {
		return " Defaults to the attempt that is current when the command reads the object."
	}
	return " By default, any attempt."
}

// severalSets completes each argument with the names that are not given yet.
func severalSets(one cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		names, directive := one(cmd, nil, word)
		return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(args, name) }), directive
	}
}
