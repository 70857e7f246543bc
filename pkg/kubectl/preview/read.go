// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// readSets returns the JobSets of the files, each in a namespace, and the number of other objects. Where they do not say, it
// is the given one; when the user asked for that one, they must not say otherwise.
func readSets(files resource.FilenameOptions, stdin io.Reader, namespace string, asked bool) ([]*unstructured.Unstructured, int, error) {
	builder := resource.NewLocalBuilder().Unstructured().ContinueOnError().Flatten()
	if len(files.Filenames) == 1 && files.Filenames[0] == "-" && files.Kustomize == "" {
		builder = builder.Stream(stdin, "standard input")
	} else {
		builder = builder.FilenameParam(false, &files)
	}
	infos, err := builder.Do().Infos()
	if err != nil {
		return nil, 0, err
	}
	var found []*unstructured.Unstructured
	others := 0
	for _, info := range infos {
		object, ok := info.Object.(*unstructured.Unstructured)
		if !ok || object.GroupVersionKind().GroupKind() != jobsetv1alpha2.SchemeGroupVersion.WithKind("JobSet").GroupKind() {
			others++
			continue
		}
		switch own := object.GetNamespace(); {
		case own == "":
			object.SetNamespace(namespace)
		case asked && own != namespace:
			return nil, 0, fmt.Errorf("--namespace: must be %q, in which %s has the JobSet %s, not %q", own, info.Source, object.GetName(), namespace)
		}
		found = append(found, object)
	}
	if len(found) == 0 {
		return nil, 0, fmt.Errorf("--filename: holds no JobSet of the group %s, only %s of other kinds", jobsetv1alpha2.GroupName, cli.Count(others, "object"))
	}
	return found, others, nil
}
