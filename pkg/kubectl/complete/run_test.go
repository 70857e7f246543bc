// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package complete

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	metadatafake "k8s.io/client-go/metadata/fake"

	archivev1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/fake"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/test/builders"
)

// archived returns the clients of a cluster with two runs of the set "train" and one of "eval".
func archived(t *testing.T) clients {
	t.Helper()
	var objects, metadata []runtime.Object
	for name, of := range map[string]string{"train-1": "train", "train-2": "train", "eval-1": "eval"} {
		meta := metav1.ObjectMeta{Namespace: builders.Namespace, Name: name}
		objects = append(objects, &archivev1alpha1.Run{ObjectMeta: meta, Object: archivev1alpha1.RunObject{Name: of}})
		metadata = append(metadata, &metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: archivev1alpha1.SchemeGroupVersion.String(), Kind: "Run"}, ObjectMeta: meta,
		})
	}
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := &cli.Clients{Namespace: builders.Namespace, JobSets: fake.NewClientset(objects...), Metadata: metadatafake.NewSimpleMetadataClient(scheme, metadata...)}
	return func() (*cli.Clients, error) { return c, nil }
}

func TestNamesOfArchive(t *testing.T) {
	of := archived(t)
	kinds := []cli.For[Values]{{Kind: cli.JobSet}, {Kind: cli.Run}}
	for name, tc := range map[string]struct {
		complete cobra.CompletionFunc
		args     []string
		word     string
		want     []string
	}{
		"runs":                        {names(of, kinds), nil, "run/", []string{"run/eval-1", "run/train-1", "run/train-2"}},
		"runs that begin like this":   {names(of, kinds), nil, "runs/tr", []string{"runs/train-1", "runs/train-2"}},
		"objects, each of them once":  {recorded(of), nil, "", []string{"eval", "train"}},
		"objects that begin so":       {recorded(of), nil, "t", []string{"train"}},
		"nothing after the first one": {recorded(of), []string{"train"}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := &cobra.Command{}
			cmd.SetContext(t.Context())
			got, directive := tc.complete(cmd, tc.args, tc.word)
			if diff := cmp.Diff(tc.want, got); diff != "" || directive != cobra.ShellCompDirectiveNoFileComp {
				t.Errorf("directive %v; words (-want +got):\n%s", directive, diff)
			}
		})
	}
}
