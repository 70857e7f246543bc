// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// readObjects returns the objects of the kinds in the files, each in a namespace, and the number of other objects. Where they do not
// say, it is the given one; when the user asked for that one, they must not say otherwise.
func readObjects(kinds []cli.For[Previewer], files resource.FilenameOptions, stdin io.Reader, namespace string, asked bool) ([]object, int, error) {
	infos, err := readFiles(files, stdin)
	if err != nil {
		return nil, 0, err
	}
	var found []object
	others := 0
	for _, info := range infos {
		o, ok := info.Object.(*unstructured.Unstructured)
		at := slices.IndexFunc(kinds, func(k cli.For[Previewer]) bool { return ok && k.GroupKind() == o.GroupVersionKind().GroupKind() })
		if at < 0 {
			others++
			continue
		}
		switch own := o.GetNamespace(); {
		case own == "":
			o.SetNamespace(namespace)
		case asked && own != namespace:
			return nil, 0, fmt.Errorf("--namespace: must be %q, in which %s has the %s %s, not %q", own, info.Source, kinds[at].Title, o.GetName(), namespace)
		}
		found = append(found, object{o, kinds[at]})
	}
	if len(found) == 0 {
		var wanted []string
		for _, k := range kinds {
			wanted = append(wanted, k.Title+" of the group "+k.GroupVersion.Group)
		}
		return nil, 0, fmt.Errorf("--filename: holds no %s, only %s of other kinds", strings.Join(wanted, " and no "), cli.Count(others, "object"))
	}
	return found, others, nil
}

// readFiles returns all objects of the files.
func readFiles(files resource.FilenameOptions, stdin io.Reader) ([]*resource.Info, error) {
	builder := resource.NewLocalBuilder().Unstructured().ContinueOnError().Flatten()
	if len(files.Filenames) == 1 && files.Filenames[0] == "-" && files.Kustomize == "" {
		builder = builder.Stream(stdin, "standard input")
	} else {
		builder = builder.FilenameParam(false, &files)
	}
	return builder.Do().Infos()
}
