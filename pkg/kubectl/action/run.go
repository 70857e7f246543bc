// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package action

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/outage"
)

// runner does one action to one or more sets.
type runner struct {
	*options
	streams genericiooptions.IOStreams
	clients *cli.Clients
	request Request
	// explained says that an error has said why our API does not answer.
	explained bool
}

// object is one that a command was given.
type object struct {
	target cli.For[Target]
	name   string
}

func (o object) qualified() string { return o.target.Qualified(o.name) }

// argument is how the user names the object to commands.
func (o object) argument() string {
	if o.target.Title == cli.JobSet.Title {
		return o.name
	}
	return o.target.Names[0] + "/" + o.name
}

// result is an object for which the server has done the action.
type result struct {
	object
	answer Answer
}

// all asks for the action on each object, whatever became of those before, and then waits for each.
func (r *runner) all(ctx context.Context, objects []object) error {
	if ok, err := r.confirmed(objects); err != nil || !ok {
		return err
	}
	var done []result
	failed := false
	for _, o := range objects {
		answer, err := r.one(ctx, o)
		if err != nil {
			failed = true
			r.report(ctx, o, err)
			continue
		}
		done = append(done, result{o, answer})
		switch {
		case r.output.ForHumans():
			fmt.Fprintln(r.streams.Out, r.sentence(o, answer))
		case r.output.Is(formatName):
			fmt.Fprintln(r.streams.Out, o.qualified())
		}
	}
	if err := r.printAll(done); err != nil {
		return err
	}
	if r.wait {
		failed = !r.waitForAll(ctx, done) || failed
	}
	if failed {
		return cli.ErrSilent
	}
	return nil
}

// report prints the error of one object. The first one says why our API does not answer, if that is what it is about.
func (r *runner) report(ctx context.Context, o object, err error) {
	if !r.explained && outage.Concerns(err) {
		r.explained = true
		err = outage.Explain(ctx, r.clients, err, o.target.Kind)
	}
	fmt.Fprintln(r.streams.ErrOut, "error:", cli.Explain(err, o.target.Kind))
}

// confirmed asks before sets are cancelled, if a user is there to answer.
func (r *runner) confirmed(objects []object) (bool, error) {
	interactive := isTerminal(r.streams.In) && isTerminal(r.streams.ErrOut)
	if r.action.name != cancel.name || r.yes || r.dryRun == dryRunServer || !interactive {
		return true, nil
	}
	var names []string
	for _, o := range objects {
		names = append(names, o.name)
	}
	return confirm(r.streams.In, r.streams.ErrOut, names)
}

func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

func confirm(in io.Reader, out io.Writer, names []string) (bool, error) {
	what := "Its active Jobs are deleted, the object is kept."
	if len(names) > 1 {
		what = "Their active Jobs are deleted, the objects are kept."
	}
	fmt.Fprintf(out, "Cancel %s? %s [y/N] ", strings.Join(names, ", "), what)
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("reading the answer: %w", err)
	}
	if word := strings.ToLower(strings.TrimSpace(line)); word == "y" || word == "yes" {
		return true, nil
	}
	fmt.Fprintln(out, "Nothing was cancelled.")
	return false, nil
}

// one asks the server for the action on one object.
func (r *runner) one(ctx context.Context, o object) (Answer, error) {
	req := r.request
	if r.action.oncePerAttempt && req.Preconditions == nil {
		seen, err := o.target.Do.Preconditions(ctx, r.clients, o.name)
		if apierrors.IsForbidden(err) {
			flag := attemptFlag
			if !o.target.Do.Takes(flag) {
				flag = generationFlag
			}
			return Answer{}, fmt.Errorf("%w; with --%s, the command does not read the object", err, flag)
		}
		if err != nil {
			return Answer{}, err
		}
		req.Preconditions = seen
	}
	create := metav1.CreateOptions{}
	if r.dryRun == dryRunServer {
		create.DryRun = []string{metav1.DryRunAll}
	}
	got, err := o.target.Do.Send(ctx, r.clients, r.action.name, o.name, req, create)
	if err != nil {
		return Answer{}, r.explain(ctx, o, err)
	}
	return got, nil
}

// explain returns the error of the server in words for a user. A server without the action answers as if there were no
// such set.
func (r *runner) explain(ctx context.Context, o object, err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		if _, readErr := o.target.Do.Preconditions(ctx, r.clients, o.name); readErr == nil {
			return r.notServed(o)
		}
	}
	prefix := fmt.Sprintf("Operation cannot be fulfilled on %s.%s %q: ", o.target.Names[1], o.target.GroupVersion.Group, o.name)
	if because, found := strings.CutPrefix(err.Error(), prefix); found && apierrors.IsConflict(err) {
		if precondition := r.unmet(err); precondition != "" {
			because = precondition
		}
		return fmt.Errorf("%s not %s: %s", o.qualified(), r.action.past, r.keepRevisions(o, because))
	}
	if causes := causesOf(err); len(causes) > 0 {
		return fmt.Errorf("%s not %s: %s", o.qualified(), r.action.past, r.keepRevisions(o, strings.Join(causes, "; ")))
	}
	return err
}

func (r *runner) notServed(o object) error {
	if r.action.elsewhere == "" || o.target.Title != cli.JobSet.Title {
		return fmt.Errorf("%s not %s: this server has no action %s for %ss; it is a feature of jobset-apiserver", o.qualified(), r.action.past,
			r.action.name, o.target.Title)
	}
	return fmt.Errorf("%s not %s: this server has no action %s for %ss, which is a feature of jobset-apiserver; use this command instead: "+
		"kubectl patch %s %s -n %s --type=merge -p '%s'",
		o.qualified(), r.action.past, r.action.name, o.target.Title, o.target.Names[0], o.name, r.clients.Namespace, r.action.elsewhere)
}

// unmet describes the precondition that was not met, by the name of its flag; "" if the error is about something else.
func (r *runner) unmet(err error) string {
	for _, cause := range causesIn(err) {
		given := r.request.Preconditions
		if text := unmetByLeaderWorkerSet(given, cause); text != "" {
			return text
		}
		switch {
		case cause.Field == "spec.preconditions.uid":
			return cause.Message + " in the meantime"
		case cause.Field == "spec.preconditions.step" && r.step != "":
			return fmt.Sprintf("--step %s is not the current one; %s", r.step, cause.Message)
		case cause.Field == "spec.preconditions.step":
			return "another step began in the meantime: " + cause.Message
		case cause.Field != "spec.preconditions.attempt":
			continue
		case given == nil || given.Attempt == nil:
			return "another attempt began in the meantime: " + cause.Message
		case cause.Type == metav1.CauseTypeFieldValueNotFound:
			return fmt.Sprintf("--attempt %d does not exist; %s", *given.Attempt, cause.Message)
		default:
			return fmt.Sprintf("--attempt %d is out of date; %s", *given.Attempt, cause.Message)
		}
	}
	return ""
}

// causesOf returns what is wrong with the fields of a request that was refused as invalid. A policy that denies names no field.
func causesOf(err error) []string {
	if !apierrors.IsInvalid(err) {
		return nil
	}
	var causes []string
	for _, cause := range causesIn(err) {
		causes = append(causes, strings.TrimPrefix(cause.Field+": "+cause.Message, ": "))
	}
	return causes
}

// causesIn returns the causes in the response of the server.
func causesIn(err error) []metav1.StatusCause {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	return status.Status().Details.Causes
}

// sentence describes what the server did.
func (r *runner) sentence(o object, a Answer) string {
	suffix := ""
	if r.dryRun == dryRunServer {
		suffix = " (server dry run)"
	}
	if a.Status.Time == nil {
		message := strings.Replace(a.Status.Message, helper.ForceRestart, "use --force to restart it", 1)
		return fmt.Sprintf("%s unchanged: %s%s", o.qualified(), message, suffix)
	}
	var notes []string
	if a.Status.Step != "" {
		notes = append(notes, "step "+a.Status.Step)
	}
	if a.Status.Attempt > 0 {
		notes = append(notes, fmt.Sprintf("attempt %d", a.Status.Attempt))
	}
	if r.request.Group != nil {
		notes = append(notes, fmt.Sprintf("group %d", *r.request.Group))
	}
	if a.Status.Revision > 0 {
		notes = append(notes, fmt.Sprintf("revision %d", a.Status.Revision))
	}
	switch r.request.Scope {
	case batchv1alpha1.RestartScopeReplicatedJob:
		notes = append(notes, "replicatedJob "+r.request.ReplicatedJob)
	case batchv1alpha1.RestartScopeJob:
		notes = append(notes, fmt.Sprintf("Job %d of replicatedJob %s", ptr.Deref(r.request.JobIndex, 0), r.request.ReplicatedJob))
	}
	if len(notes) > 0 {
		suffix = fmt.Sprintf(" (%s)%s", strings.Join(notes, ", "), suffix)
	}
	return o.qualified() + " " + r.action.past + suffix + r.rollbackNotes(o, a.Status.Message)
}

// printAll prints the object that the server answered, or a list of them.
func (r *runner) printAll(done []result) error {
	if r.output.ForHumans() || r.output.Is(formatName) || len(done) == 0 {
		return nil
	}
	if len(done) == 1 {
		return r.output.Print(r.streams.Out, done[0].answer.Object)
	}
	list := &metav1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}}
	for _, d := range done {
		list.Items = append(list.Items, runtime.RawExtension{Object: d.answer.Object})
	}
	return r.output.Print(r.streams.Out, list)
}
