// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package action

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/ptr"

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
	yes                  bool
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
	cmd := newCommand(f, targets, o, "Restart a JobSet, or a part of it", `Restart JobSets: all Jobs, those of one replicatedJob, or one Job. Their pods are replaced, and the
set records who requested it, when and why. It counts towards maxRestarts of the failure policy only if requested.

The command restarts the attempt that runs when it reads the set, or the one that --attempt names. If another attempt has begun
in the meantime, nothing is restarted. If several people restart the same attempt, the set restarts once. What was restarted on
request and is not ready yet is not restarted again, unless --force is set.

The command requires permission to create jobsets/restart, but not to edit JobSets.`, `  # Restart the whole set
  kubectl jobset restart train --reason "link down on rack 7"

  # Restart one Job, and follow until all are ready again
  kubectl jobset restart train --replicated-job workers --job-index 3 --wait

  # Restart attempt 2, once, however often this is called
  kubectl jobset restart train --attempt 2`)
	flags := cmd.Flags()
	flags.StringVar(&o.scope, "scope", "", "What to restart: JobSet, ReplicatedJob or Job. By default, follows from the other flags.")
	flags.StringVar(&o.replicatedJob, complete.ReplicatedJobFlag, "", "Restart only this replicatedJob.")
	flags.Int32Var(&o.jobIndex, "job-index", 0, "Restart only this Job of the replicatedJob.")
	flags.BoolVar(&o.counts, "count-towards-max-restarts", false, "Count the restart towards maxRestarts of the failure policy.")
	flags.BoolVar(&o.force, "force", false, "Restart even if the current attempt was requested for the same target and is not ready yet.")
	scopes := []cobra.Completion{string(batchv1alpha1.RestartScopeJobSet), string(batchv1alpha1.RestartScopeReplicatedJob), string(batchv1alpha1.RestartScopeJob)}
	_ = cmd.RegisterFlagCompletionFunc("scope", cobra.FixedCompletions(scopes, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// NewSuspend returns `kubectl jobset suspend`.
func NewSuspend(f *cli.Factory, targets []cli.For[Target]) *cobra.Command {
	return newCommand(f, targets, &options{action: suspend}, "Suspend a JobSet", `Suspend JobSets: their pods are deleted, and the Jobs stay, suspended. The set records who requested it, when and why.

The command requires permission to create jobsets/suspend, but not to edit JobSets. A set that a queue manages is suspended by the queue.`, `  # Suspend a set, and wait until its pods are gone
  kubectl jobset suspend train --reason "the cluster is drained tonight" --wait`)
}

// NewResume returns `kubectl jobset resume`.
func NewResume(f *cli.Factory, targets []cli.For[Target]) *cobra.Command {
	return newCommand(f, targets, &options{action: resume}, "Resume a suspended JobSet", `Resume suspended JobSets. The set records who requested it, when and why.

The command requires permission to create jobsets/resume, but not to edit JobSets. A set that a queue manages is resumed by the queue.`, `  # Resume two sets
  kubectl jobset resume train eval

  # Resume a set, and wait for up to ten minutes until all its Jobs are ready
  kubectl jobset resume train --wait --timeout 10m`)
}

// NewCancel returns `kubectl jobset cancel`.
func NewCancel(f *cli.Factory, targets []cli.For[Target]) *cobra.Command {
	o := &options{action: cancel}
	cmd := newCommand(f, targets, o, "Cancel a JobSet and keep the object", `Cancel JobSets: they fail with the reason Cancelled, their active Jobs are deleted, and the objects with their history stay.
On a terminal, the command asks for confirmation. A cancelled set can be run again with kubectl jobset retry.

The command requires permission to create jobsets/cancel, but not to edit JobSets.`, `  # Cancel a set
  kubectl jobset cancel train --reason "wrong data set"

  # Cancel without confirmation, and wait until its Jobs are gone
  kubectl jobset cancel train --yes --wait`)
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "Do not ask for confirmation.")
	return cmd
}

// NewRetry returns `kubectl jobset retry`.
func NewRetry(f *cli.Factory, targets []cli.For[Target]) *cobra.Command {
	o := &options{action: retry}
	cmd := newCommand(f, targets, o, "Run a failed JobSet again", `Retry failed JobSets: they run again from a new attempt, and the history is kept. The retry itself does not count towards
maxRestarts of the failure policy; --max-restarts grants additional restarts.

The command requires permission to create jobsets/retry, but not to edit JobSets.`, `  # Run a failed set again
  kubectl jobset retry train --reason "the storage is back"

  # Also let it restart three more times by itself
  kubectl jobset retry train --max-restarts 3 --wait`)
	cmd.Flags().Int32Var(&o.maxRestarts, "max-restarts", 0, "Number of additional restarts to grant.")
	return cmd
}

func newCommand(f *cli.Factory, targets []cli.For[Target], o *options, short, long, example string) *cobra.Command {
	cmd := &cobra.Command{
		Use:               o.action.name + " NAME...",
		Short:             short,
		Long:              long,
		Example:           example,
		ValidArgsFunction: severalSets(complete.Names(f, targets)),
		RunE: func(cmd *cobra.Command, args []string) error {
			objects, r, err := o.complete(cmd, targets, args)
			if err != nil {
				return err
			}
			clients, err := f.Clients()
			if err != nil {
				return err
			}
			run := &runner{options: o, streams: f.IOStreams, clients: clients, request: r}
			return run.all(cmd.Context(), objects)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.reason, "reason", "", "Reason for the action, kept in the history of the set. At most 1024 characters.")
	flags.Int32Var(&o.attempt, "attempt", 0, "Act only if this is the number of the current attempt."+o.attemptDefault())
	flags.StringVar(&o.dryRun, "dry-run", dryRunNone, "Must be none or server. With server, the server checks the request and changes nothing.")
	flags.BoolVar(&o.wait, "wait", false, "Wait until "+o.action.goal.String()+", and show the progress.")
	flags.DurationVar(&o.timeout, "timeout", 0, "Time limit for --wait, such as 10m. 0 means no limit.")
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions([]cobra.Completion{dryRunNone, dryRunServer}, cobra.ShellCompDirectiveNoFileComp))
	o.output.AddFlags(cmd, formatName)
	return cmd
}

func (o *options) attemptDefault() string {
	if o.action.oncePerAttempt {
		return " Defaults to the attempt that is current when the command reads the set."
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

// complete checks the flags and returns the objects, each once, and what to ask for.
func (o *options) complete(cmd *cobra.Command, targets []cli.For[Target], args []string) ([]object, Request, error) {
	var objects []object
	for _, arg := range args {
		target, name, err := cli.Find(targets, []string{arg})
		if err != nil {
			return nil, Request{}, err
		}
		given := func(other object) bool { return other.name == name && other.target.Title == target.Title }
		if !slices.ContainsFunc(objects, given) {
			objects = append(objects, object{target, name})
		}
	}
	if len(objects) == 0 {
		_, _, err := cli.Find(targets, nil)
		return nil, Request{}, err
	}
	if err := o.check(); err != nil {
		return nil, Request{}, err
	}
	r := Request{Reason: o.reason, ReplicatedJob: o.replicatedJob, Counts: o.counts, Force: o.force, MaxRestarts: o.maxRestarts}
	if cmd.Flags().Changed("job-index") {
		r.JobIndex = ptr.To(o.jobIndex)
	}
	if cmd.Flags().Changed("attempt") {
		if o.attempt < 0 {
			return nil, Request{}, fmt.Errorf("--attempt: must be 0 or more, not %d", o.attempt)
		}
		r.Preconditions = &batchv1alpha1.ActionPreconditions{Attempt: ptr.To(o.attempt)}
	}
	var err error
	r.Scope, err = o.scopeOf(r.JobIndex)
	return objects, r, err
}

func (o *options) check() error {
	switch {
	case o.dryRun != dryRunNone && o.dryRun != dryRunServer:
		return fmt.Errorf("--dry-run: must be %s or %s, not %q", dryRunNone, dryRunServer, o.dryRun)
	case o.dryRun == dryRunServer && o.wait:
		return fmt.Errorf("--wait: cannot be used with --dry-run=%s", dryRunServer)
	case o.timeout < 0:
		return fmt.Errorf("--timeout: must be 0 or more, not %v", o.timeout)
	case o.timeout > 0 && !o.wait:
		return fmt.Errorf("--timeout: requires --wait")
	case o.maxRestarts < 0:
		return fmt.Errorf("--max-restarts: must be 0 or more, not %d", o.maxRestarts)
	}
	return o.output.Validate()
}

// scopeOf returns the scope of a restart, which --scope may only repeat: the other flags imply it.
func (o *options) scopeOf(jobIndex *int32) (batchv1alpha1.RestartScope, error) {
	implied, err := o.impliedScope(jobIndex)
	if err != nil {
		return "", err
	}
	switch scope := batchv1alpha1.RestartScope(o.scope); {
	case scope == "" || scope == implied:
		return implied, nil
	case scope == batchv1alpha1.RestartScopeJob:
		return "", fmt.Errorf("--scope: Job requires --%s and --job-index", complete.ReplicatedJobFlag)
	case scope == batchv1alpha1.RestartScopeReplicatedJob && implied == batchv1alpha1.RestartScopeJobSet:
		return "", fmt.Errorf("--scope: ReplicatedJob requires --%s", complete.ReplicatedJobFlag)
	case scope == batchv1alpha1.RestartScopeReplicatedJob:
		return "", fmt.Errorf("--scope: ReplicatedJob cannot be used with --job-index")
	case scope == batchv1alpha1.RestartScopeJobSet:
		return "", fmt.Errorf("--scope: JobSet cannot be used with --%s or --job-index", complete.ReplicatedJobFlag)
	}
	return "", fmt.Errorf("--scope: must be JobSet, ReplicatedJob or Job, not %q", o.scope)
}

// impliedScope returns the scope that --replicated-job and --job-index imply.
func (o *options) impliedScope(jobIndex *int32) (batchv1alpha1.RestartScope, error) {
	switch {
	case jobIndex == nil && o.replicatedJob == "":
		return batchv1alpha1.RestartScopeJobSet, nil
	case jobIndex == nil:
		return batchv1alpha1.RestartScopeReplicatedJob, nil
	case o.replicatedJob == "":
		return "", fmt.Errorf("--job-index: requires --%s", complete.ReplicatedJobFlag)
	case *jobIndex < 0:
		return "", fmt.Errorf("--job-index: must be 0 or more, not %d", *jobIndex)
	}
	return batchv1alpha1.RestartScopeJob, nil
}
