// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// readObjects returns the objects of the kinds in the files, and the other objects, each in a namespace. Where they do not
// say, it is the given one; when the user asked for that one, objects of the kinds must not say otherwise.
func readObjects(kinds []cli.For[Previewer], files resource.FilenameOptions, stdin io.Reader, namespace string,
	asked bool) ([]object, manifest, error) {
	infos, err := readFiles(files, stdin)
	if err != nil {
		return nil, nil, err
	}
	var found []object
	var others manifest
	for _, info := range infos {
		o, ok := info.Object.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		own := o.GetNamespace()
		if own == "" {
			o.SetNamespace(namespace)
		}
		at := slices.IndexFunc(kinds, func(k cli.For[Previewer]) bool { return k.GroupKind() == o.GroupVersionKind().GroupKind() })
		switch {
		case at < 0:
			others = append(others, o)
			continue
		case own != "" && asked && own != namespace:
			return nil, nil, fmt.Errorf("--namespace: must be %q, in which %s has the %s %s, not %q", own, info.Source, kinds[at].Title, o.GetName(),
				namespace)
		}
		found = append(found, object{o, kinds[at]})
	}
	if len(found) == 0 {
		var wanted []string
		for _, k := range kinds {
			wanted = append(wanted, k.Title+" of the group "+k.GroupVersion.Group)
		}
		return nil, nil, fmt.Errorf("--filename: holds no %s, only %s of other kinds", strings.Join(wanted, " and no "),
			cli.Count(len(others), "object"))
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
	infos, err := builder.Do().Infos()
	if err != nil {
		return nil, errors.New(inGo.ReplaceAllString(err.Error(), "must be an object with apiVersion and kind, not a $1"))
	}
	return infos, nil
}

// inGo is how the library names a document that is no object.
var inGo = regexp.MustCompile(`json: cannot unmarshal (\w+) into Go value of type \S+`)
