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
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	jobsetclient "github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/typed/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// runner does one action to one or more sets.
type runner struct {
	*options
	streams genericiooptions.IOStreams
	clients *cli.Clients
	request request
}

// result is a set for which the server has done the action.
type result struct {
	name   string
	answer answer
}

// all asks for the action on each set, whatever became of those before, and then waits for each.
func (r *runner) all(ctx context.Context, names []string) error {
	if ok, err := r.confirmed(names); err != nil || !ok {
		return err
	}
	var done []result
	failed := false
	for _, name := range names {
		answer, err := r.one(ctx, name)
		if err != nil {
			failed = true
			fmt.Fprintln(r.streams.ErrOut, "error:", cli.Explain(err))
			continue
		}
		done = append(done, result{name, answer})
		if r.output.ForHumans() {
			fmt.Fprintln(r.streams.Out, r.sentence(name, answer))
		}
	}
	if !r.output.ForHumans() && len(done) > 0 {
		if err := r.output.Print(r.streams.Out, data(done)); err != nil {
			return err
		}
	}
	if r.wait {
		failed = !r.waitForAll(ctx, done) || failed
	}
	if failed {
		return cli.ErrSilent
	}
	return nil
}

// confirmed asks before sets are cancelled, if somebody is there to be asked.
func (r *runner) confirmed(names []string) (bool, error) {
	interactive := isTerminal(r.streams.In) && isTerminal(r.streams.ErrOut)
	if r.kind.name != cancel.name || r.yes || r.dryRun == dryRunServer || !interactive {
		return true, nil
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

// one asks the server for the action on one set.
func (r *runner) one(ctx context.Context, name string) (answer, error) {
	sets := r.clients.JobSets.JobsetV1alpha2().JobSets(r.clients.Namespace)
	req := r.request
	if r.kind.oncePerAttempt && req.preconditions == nil {
		set, err := sets.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsForbidden(err) {
			return answer{}, fmt.Errorf("%w; with --attempt, the set need not be read", err)
		}
		if err != nil {
			return answer{}, err
		}
		req.preconditions = seen(set)
	}
	create := metav1.CreateOptions{}
	if r.dryRun == dryRunServer {
		create.DryRun = []string{metav1.DryRunAll}
	}
	got, err := r.kind.send(ctx, sets, name, req, create)
	if err != nil {
		return answer{}, r.explain(ctx, sets, name, err)
	}
	got.object.GetObjectKind().SetGroupVersionKind(batchv1alpha1.SchemeGroupVersion.WithKind(r.kind.object))
	return got, nil
}

// seen are the preconditions that what was read still holds.
func seen(set *jobsetv1alpha2.JobSet) *batchv1alpha1.ActionPreconditions {
	p := &batchv1alpha1.ActionPreconditions{UID: ptr.To(set.UID), Attempt: ptr.To[int32](0)}
	if a := helper.CurrentAttempt(&set.Status); a != nil {
		p.Attempt = ptr.To(a.Number)
	}
	return p
}

// explain returns the error of the server in words for a user. A server without the action answers as if there were no
// such set.
func (r *runner) explain(ctx context.Context, sets jobsetclient.JobSetInterface, name string, err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		if _, readErr := sets.Get(ctx, name, metav1.GetOptions{}); readErr == nil {
			return r.notOffered(name)
		}
	}
	prefix := fmt.Sprintf("Operation cannot be fulfilled on jobsets.%s %q: ", jobsetv1alpha2.GroupName, name)
	if because, found := strings.CutPrefix(err.Error(), prefix); found && apierrors.IsConflict(err) {
		return fmt.Errorf("%s not %s: %s", qualified(name), r.kind.past, because)
	}
	if causes := causesOf(err); len(causes) > 0 {
		return fmt.Errorf("%s not %s: %s", qualified(name), r.kind.past, strings.Join(causes, "; "))
	}
	return err
}

func (r *runner) notOffered(name string) error {
	if r.kind.elsewhere == "" {
		return fmt.Errorf("%s not %s: this server has no action %s for JobSets; it is a feature of jobset-apiserver", qualified(name), r.kind.past, r.kind.name)
	}
	return fmt.Errorf("%s not %s: this server has no action %s for JobSets, which is a feature of jobset-apiserver; here this does it: kubectl patch jobset %s -n %s --type=merge -p '%s'",
		qualified(name), r.kind.past, r.kind.name, name, r.clients.Namespace, r.kind.elsewhere)
}

// causesOf returns what is wrong with the fields of a request that was refused as invalid.
func causesOf(err error) []string {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var causes []string
	for _, cause := range status.Status().Details.Causes {
		causes = append(causes, cause.Field+": "+cause.Message)
	}
	return causes
}

// sentence tells what the server did.
func (r *runner) sentence(name string, a answer) string {
	suffix := ""
	if r.dryRun == dryRunServer {
		suffix = " (server dry run)"
	}
	if a.status.Time == nil {
		return fmt.Sprintf("%s unchanged: %s%s", qualified(name), a.status.Message, suffix)
	}
	var notes []string
	if a.status.Attempt > 0 {
		notes = append(notes, fmt.Sprintf("attempt %d", a.status.Attempt))
	}
	switch r.request.scope {
	case batchv1alpha1.RestartScopeReplicatedJob:
		notes = append(notes, "replicatedJob "+r.request.replicatedJob)
	case batchv1alpha1.RestartScopeJob:
		notes = append(notes, fmt.Sprintf("Job %d of replicatedJob %s", ptr.Deref(r.request.jobIndex, 0), r.request.replicatedJob))
	}
	if len(notes) > 0 {
		suffix = fmt.Sprintf(" (%s)%s", strings.Join(notes, ", "), suffix)
	}
	return qualified(name) + " " + r.kind.past + suffix
}

// qualified names a set as kubectl does.
func qualified(name string) string { return "jobset." + jobsetv1alpha2.GroupName + "/" + name }

// data is the object that the server answered, or a list of them.
func data(done []result) any {
	if len(done) == 1 {
		return done[0].answer.object
	}
	list := struct {
		metav1.TypeMeta
		Items []runtime.Object `json:"items"`
	}{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}}
	for _, d := range done {
		list.Items = append(list.Items, d.answer.object)
	}
	return list
}
