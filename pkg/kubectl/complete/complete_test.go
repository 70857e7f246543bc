// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package complete

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	metadatafake "k8s.io/client-go/metadata/fake"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/fake"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

// widget is a second kind. Its flags have values of their own.
var widget = cli.For[Values]{
	Kind: cli.Kind{Title: "Widget", Names: []string{"widget", "widgets"}, GroupVersion: schema.GroupVersion{Group: "example.com", Version: "v1"}},
	Do: Values{"attempt": func(_ context.Context, _ *cli.Clients, name string, _ *pflag.FlagSet) ([]string, error) {
		return []string{"first of " + name}, nil
	}},
}

var kinds = []cli.For[Values]{{Kind: cli.JobSet, Do: JobSet}, widget}

// withCluster returns the clients of a cluster with these sets and a widget.
func withCluster(t *testing.T, sets ...*jobsetv1alpha2.JobSet) clients {
	t.Helper()
	var objects, metadata []runtime.Object
	add := func(apiVersion, kind, namespace, name string) {
		metadata = append(metadata, &metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		})
	}
	for _, js := range sets {
		objects = append(objects, js)
		add(jobsetv1alpha2.SchemeGroupVersion.String(), "JobSet", js.Namespace, js.Name)
	}
	add("example.com/v1", "Widget", builders.Namespace, "cog")
	add("v1", "Namespace", "", builders.Namespace)
	add("v1", "Namespace", "", "kube-system")
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := &cli.Clients{Namespace: builders.Namespace, JobSets: fake.NewClientset(objects...), Metadata: metadatafake.NewSimpleMetadataClient(scheme, metadata...)}
	return func() (*cli.Clients, error) { return c, nil }
}

func noCluster() (*cli.Clients, error) { return nil, errors.New("no answer") }

func TestCompletions(t *testing.T) {
	container := func(name string) corev1.Container { return corev1.Container{Name: name} }
	trainA := builders.JobSet("train-a", builders.WithJobs("leader", 1, 1), builders.WithJobs("workers", 3, 1))
	trainA.Status.Attempts = []jobsetv1alpha2.Attempt{{Number: 9}, {Number: 10}}
	pod := &trainA.Spec.ReplicatedJobs[1].Template.Spec.Template.Spec
	pod.InitContainers, pod.Containers = []corev1.Container{container("fetch")}, append(pod.Containers, container("monitor"))
	from := withCluster(t, trainA, builders.JobSet("train-b", builders.WithJobs("workers", 11, 1)), builders.JobSet("other"))
	name := names(from, kinds)
	flag := func(name string) cobra.CompletionFunc { return values(from, kinds, name) }
	const unordered = cobra.ShellCompDirectiveNoFileComp
	const ordered = unordered | cobra.ShellCompDirectiveKeepOrder
	for name, tc := range map[string]struct {
		of            cobra.CompletionFunc
		args          []string
		replicatedJob string
		word          string
		want          []cobra.Completion
		wantDirective cobra.ShellCompDirective
	}{
		"names that begin like the word":                  {of: name, word: "tr", want: []cobra.Completion{"train-a", "train-b"}, wantDirective: unordered},
		"names keep the resource before them":             {of: name, word: "js/o", want: []cobra.Completion{"js/other"}, wantDirective: unordered},
		"names of another kind":                           {of: name, word: "widget/", want: []cobra.Completion{"widget/cog"}, wantDirective: unordered},
		"another resource has no names":                   {of: name, word: "job/", wantDirective: unordered},
		"one name is enough":                              {of: name, args: []string{"other"}, wantDirective: unordered},
		"a cluster that does not answer suggests nothing": {of: names(noCluster, kinds), wantDirective: unordered},
		"namespaces":                                  {of: namespaces(from), args: []string{"other"}, word: "k", want: []cobra.Completion{"kube-system"}, wantDirective: unordered},
		"replicatedJobs in the order of the set":      {of: flag("replicated-job"), args: []string{"jobset/train-a"}, want: []cobra.Completion{"leader", "workers"}, wantDirective: ordered},
		"replicatedJobs that begin like the word":     {of: flag("replicated-job"), args: []string{"train-a"}, word: "w", want: []cobra.Completion{"workers"}, wantDirective: ordered},
		"no replicatedJobs before the name is given":  {of: flag("replicated-job"), wantDirective: unordered},
		"no replicatedJobs of an unknown set":         {of: flag("replicated-job"), args: []string{"nobody"}, wantDirective: unordered},
		"no replicatedJobs of another kind":           {of: flag("replicated-job"), args: []string{"widget/cog"}, wantDirective: unordered},
		"indices of the replicatedJob of the flag":    {of: flag("job-index"), args: []string{"train-a"}, replicatedJob: "workers", want: []cobra.Completion{"0", "1", "2"}, wantDirective: ordered},
		"indices of the only replicatedJob":           {of: flag("job-index"), args: []string{"train-b"}, word: "1", want: []cobra.Completion{"1", "10"}, wantDirective: ordered},
		"no indices when the replicatedJob is open":   {of: flag("job-index"), args: []string{"train-a"}, wantDirective: ordered},
		"containers in the order of their start":      {of: flag("container"), args: []string{"train-a"}, word: "", want: []cobra.Completion{"main", "fetch", "monitor"}, wantDirective: ordered},
		"containers of the replicatedJob of the flag": {of: flag("container"), args: []string{"train-a"}, replicatedJob: "leader", want: []cobra.Completion{"main"}, wantDirective: ordered},
		"attempts, the newest first":                  {of: flag("attempt"), args: []string{"train-a"}, want: []cobra.Completion{"10", "9"}, wantDirective: ordered},
		"values of a flag of another kind":            {of: flag("attempt"), args: []string{"widget/cog"}, want: []cobra.Completion{"first of cog"}, wantDirective: ordered},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := &cobra.Command{}
			cmd.SetContext(t.Context())
			cmd.Flags().String(ReplicatedJobFlag, tc.replicatedJob, "")
			got, directive := tc.of(cmd, tc.args, tc.word)
			if len(got) == 0 {
				got = nil
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("completions (-want +got):\n%s", diff)
			}
			if directive != tc.wantDirective {
				t.Errorf("directive: got %d, want %d", directive, tc.wantDirective)
			}
		})
	}
}

func TestFlagsOfCommands(t *testing.T) {
	cmd := &cobra.Command{Use: "x"}
	cmd.Flags().String("attempt", "", "")
	cmd.Flags().String("reason", "", "")
	Flags(cli.NewFactory(genericiooptions.NewTestIOStreamsDiscard()), kinds, cmd)
	for flag, want := range map[string]bool{"attempt": true, "reason": false} {
		if _, found := cmd.GetFlagCompletionFunc(flag); found != want {
			t.Errorf("--%s is completed: %v, want %v", flag, found, want)
		}
	}
}
