// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package action

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/complete"
)

// Flags that objects with steps, or with attempts, have.
const (
	fromStepFlag = "from-step"
	stepFlag     = "step"
	attemptFlag  = "attempt"
)

// partial are the flags that not all kinds have.
var partial = []string{
	"scope", complete.ReplicatedJobFlag, "job-index", "count-towards-max-restarts", "force", "max-restarts", fromStepFlag, stepFlag,
	attemptFlag,
	groupFlag, generationFlag, restartsFlag,
}

// arguments are the objects that the command was given, each once.
func arguments(targets []cli.For[Target], args []string) (out []cli.Argument[Target], err error) {
	if len(args) == 0 {
		_, err := cli.Parse(targets, nil)
		return nil, err
	}
	for i, arg := range args {
		parsed, err := cli.Parse(targets, []string{arg})
		if err != nil {
			return nil, err
		}
		if !slices.Contains(args[:i], arg) {
			out = append(out, parsed)
		}
	}
	return out, nil
}

// find returns the objects of the arguments, each once, for which the flags must be.
func find(ctx context.Context, cmd *cobra.Command, c *cli.Clients, targets []cli.For[Target], arguments []cli.Argument[Target]) (
	objects []object, err error) {
	for _, arg := range arguments {
		target, err := cli.FindToChange(ctx, c, arg)
		var none *cli.NoObjectError
		if errors.As(err, &none) && len(arguments) > 1 {
			err = nil // the server says so of this one, and the others are changed
		}
		if err != nil {
			return nil, err
		}
		given := func(other object) bool { return other.name == arg.Name && other.target.Title == target.Title }
		if !slices.ContainsFunc(objects, given) {
			objects = append(objects, object{target, arg.Name})
		}
	}
	return objects, checkTaken(cmd, targets, objects)
}

// complete checks the flags and returns what to ask for.
func (o *options) complete(cmd *cobra.Command) (Request, error) {
	if err := o.check(); err != nil {
		return Request{}, err
	}
	r := Request{
		Reason: o.reason, ReplicatedJob: o.replicatedJob, Counts: o.counts, Force: o.force, MaxRestarts: o.maxRestarts, FromStep: o.fromStep,
		ToRevision: o.toRevision,
	}
	if cmd.Flags().Changed("job-index") {
		r.JobIndex = ptr.To(o.jobIndex)
	}
	if cmd.Flags().Changed(groupFlag) {
		r.Group = ptr.To(o.group)
	}
	var err error
	if r.Preconditions, err = o.preconditions(cmd); err != nil {
		return Request{}, err
	}
	r.Scope, err = o.scopeOf(r.JobIndex)
	return r, err
}

// preconditions returns those that flags name; nil if none does.
func (o *options) preconditions(cmd *cobra.Command) (*Preconditions, error) {
	p := Preconditions{Step: o.step}
	if cmd.Flags().Changed(attemptFlag) {
		p.Attempt = ptr.To(o.attempt)
	}
	if cmd.Flags().Changed(generationFlag) {
		p.Generation = ptr.To(o.generation)
	}
	if cmd.Flags().Changed(restartsFlag) {
		p.Restarts = ptr.To(o.restarts)
	}
	switch {
	case o.attempt < 0:
		return nil, fmt.Errorf("--%s: must be 0 or more, not %d", attemptFlag, o.attempt)
	case o.generation < 0:
		return nil, fmt.Errorf("--%s: must be 0 or more, not %d", generationFlag, o.generation)
	case o.restarts < 0:
		return nil, fmt.Errorf("--%s: must be 0 or more, not %d", restartsFlag, o.restarts)
	case p.Restarts != nil && !cmd.Flags().Changed(groupFlag):
		return nil, fmt.Errorf("--%s: requires --%s", restartsFlag, groupFlag)
	case p == Preconditions{}:
		return nil, nil
	}
	return &p, nil
}

// checkTaken refuses flags that the kind of an object does not have.
func checkTaken(cmd *cobra.Command, targets []cli.For[Target], objects []object) error {
	for _, flag := range partial {
		if !cmd.Flags().Changed(flag) {
			continue
		}
		var takers []string
		for _, target := range targets {
			if target.Do.Takes(flag) {
				takers = append(takers, target.Title+"s")
			}
		}
		for _, o := range objects {
			if !o.target.Do.Takes(flag) {
				return fmt.Errorf("--%s: is for %s, and cannot be used with %s", flag, strings.Join(takers, " and "), o.argument())
			}
		}
	}
	return nil
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
	case o.group < 0:
		return fmt.Errorf("--%s: must be 0 or more, not %d", groupFlag, o.group)
	case o.toRevision < 0:
		return fmt.Errorf("--to-revision: must be 0 or more, not %d", o.toRevision)
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
