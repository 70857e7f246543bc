// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// actionKinds are the kinds of the requests.
var actionKinds = map[string]string{
	"restart": "JobSetRestart", "suspend": "JobSetSuspend", "resume": "JobSetResume", "cancel": "JobSetCancel", "retry": "JobSetRetry",
}

// act posts an action on a set to the API. The spec is JSON without its braces.
func (k *kubectl) act(action, set, spec string) result {
	k.Helper()
	return k.actQuery(action, set, spec, "")
}

func (k *kubectl) actQuery(action, set, spec, query string) result {
	k.Helper()
	body := fmt.Sprintf(`{"apiVersion":"batch.jobset-apiserver.io/v1alpha1","kind":%q,"spec":{%s}}`, actionKinds[action], spec)
	path := fmt.Sprintf("/apis/jobset.x-k8s.io/v1alpha2/namespaces/%s/jobsets/%s/%s%s", k.namespace, set, action, query)
	return k.run(body, "create", "--raw", path, "-f", "-")
}

// answer is the status of the action that the server did.
func (k *kubectl) answer(r result) batchv1alpha1.JobSetActionStatus {
	k.Helper()
	var done struct {
		Status batchv1alpha1.JobSetActionStatus `json:"status"`
	}
	if r.code != 0 {
		k.Errorf("the action was refused: %s", r.stderr)
	} else if err := json.Unmarshal([]byte(r.stdout), &done); err != nil {
		k.Errorf("answer %q: %v", r.stdout, err)
	}
	return done.Status
}

// inNamespace is what comes before the name of a service account in the name of its user.
var inNamespace = regexp.MustCompile(`system:serviceaccount:[^:]+:`)

// sets are all JobSets of the namespace by name.
func (k *kubectl) sets() map[string]*jobsetv1alpha2.JobSet {
	k.Helper()
	var list jobsetv1alpha2.JobSetList
	if err := json.Unmarshal([]byte(k.ok("get", "jobsets", "-o", "json")), &list); err != nil {
		k.Fatal(err)
	}
	sets := map[string]*jobsetv1alpha2.JobSet{}
	for i := range list.Items {
		sets[list.Items[i].Name] = &list.Items[i]
	}
	return sets
}

// operator is an account of the name with the role jobset-operator and nothing else, ready to be used.
func (k *kubectl) operator(name string) *kubectl {
	k.Helper()
	operator := k.account(name, "jobset-operator")
	operator.mayEventually("create", "jobsets.jobset.x-k8s.io", "--subresource=restart")
	return operator
}

// mayEventually waits for a permission. It asks kube-apiserver, because our server remembers for a while what it was told.
func (k *kubectl) mayEventually(question ...string) {
	k.Helper()
	k.eventually(func() string {
		r := k.run("", append([]string{"auth", "can-i"}, question...)...)
		if r.code != 0 {
			return strings.Join(question, " ") + ": " + r.stdout + r.stderr
		}
		return ""
	})
}

// summary describes in one line what actions change of a set: suspend, the true conditions and the attempts.
// Users are called by the last part of their names.
func summary(js *jobsetv1alpha2.JobSet) string {
	by := func(user, reason string) string {
		if user == "" {
			return ""
		}
		return fmt.Sprintf(" (%s: %s)", user[strings.LastIndex(user, ":")+1:], reason)
	}
	var parts []string
	if js.Spec.Suspend != nil && *js.Spec.Suspend {
		parts = append(parts, "suspend")
	}
	parts = append(parts, fmt.Sprintf("restarts=%d", js.Status.Restarts))
	for _, c := range js.Status.Conditions {
		if c.Status == metav1.ConditionTrue {
			parts = append(parts, c.Type+"/"+c.Reason)
		}
	}
	text := strings.Join(parts, " ")
	for _, a := range js.Status.Attempts {
		text += fmt.Sprintf(" | %d %s%s", a.Number, a.Trigger, by(a.User, a.Reason))
		switch {
		case a.EndTime != nil:
			text += fmt.Sprintf(" → %s%s", a.Outcome, by(a.EndUser, a.EndReason))
		case a.ReadyTime != nil:
			text += ", ready"
		}
	}
	return text
}

// awaitSummary waits until the summary of a set is the wanted one.
func (k *kubectl) awaitSummary(set, want string) {
	k.Helper()
	k.eventually(func() string {
		js := k.sets()[set]
		if js == nil {
			return "set " + set + " is gone"
		}
		if diff := cmp.Diff(want, summary(js)); diff != "" {
			return set + " (-want +got):\n" + diff
		}
		return ""
	})
}

// refusal is what kubectl prints when the server refuses an action.
func refusal(set, why string) string {
	return fmt.Sprintf("Error from server (Conflict): Operation cannot be fulfilled on jobsets.jobset.x-k8s.io %q: %s\n", set, why)
}

func TestActionOnMissingSet(t *testing.T) {
	t.Parallel()
	k := newKubectl(t)
	for action := range actionKinds {
		want := `Error from server (NotFound): jobsets.jobset.x-k8s.io "nobody" not found` + "\n"
		if diff := cmp.Diff(want, k.act(action, "nobody", "").stderr); diff != "" {
			t.Errorf("%s (-want +got):\n%s", action, diff)
		}
	}
}
