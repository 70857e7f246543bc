// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/unreadable"
)

// giveReadable writes one object, unless it is the placeholder of one that the server cannot read: nothing of that is known but its
// metadata, so that it is a problem.
func (g *giver) giveReadable(ctx context.Context, name types.NamespacedName, object, there *custom, out *given) error {
	if unreadable.Is(object) {
		out.problem(name, fmt.Errorf("%s: an administrator must repair or remove it first; see \"kubectl jobset doctor\"",
			unreadable.Explain(object)))
		return nil
	}
	return g.give(ctx, name, object, there, out)
}

// compare reports what the CustomResourceDefinition does not know.
func (g *giver) compare(wanted, result *custom, err error) {
	if err != nil || g.lost == nil || !g.dryRun {
		return
	}
	fields := sets.New[string]()
	for _, part := range []string{"spec", "status"} {
		missing(part, wanted.Object[part], result.Object[part], fields)
	}
	if fields.Len() > 0 {
		g.lost(nameOf(wanted), sets.List(fields))
	}
}

// missing collects the paths of fields that only the first value has. Those of list items have [] in place of an index.
func missing(path string, has, got any, fields sets.Set[string]) {
	switch has := has.(type) {
	case map[string]any:
		known, ok := got.(map[string]any)
		for name, value := range has {
			if _, there := known[name]; ok && there {
				missing(path+"."+name, value, known[name], fields)
			} else {
				fields.Insert(path + "." + name)
			}
		}
	case []any:
		known, _ := got.([]any)
		for i, value := range has[:min(len(has), len(known))] {
			missing(path+"[]", value, known[i], fields)
		}
	}
}

// same returns whether an object would not be changed but for what every write changes.
func same(a, b *custom) bool {
	return equality.Semantic.DeepEqual(essence(a), essence(b))
}

func essence(object *custom) map[string]any {
	copied := object.DeepCopy()
	copied.SetResourceVersion("")
	copied.SetManagedFields(nil)
	copied.SetGeneration(0)
	return copied.Object
}
