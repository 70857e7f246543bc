// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/retry"
)

// serve lets a CustomResourceDefinition serve its version, or none: then kube-apiserver ends the watches of its objects.
func (r *router) serve(ctx context.Context, s subject, served bool) error {
	return r.changeDefinition(ctx, s, func(spec map[string]any, _ map[string]string) error {
		versions, _, err := unstructured.NestedSlice(spec, "versions")
		if fields := versionOf(versions, s.resource.Version); fields != nil {
			fields["served"] = served
		}
		spec["versions"] = versions
		return err
	})
}

// returnVersion is the version through which a CustomResourceDefinition takes objects while the group is routed to jobset-apiserver.
const returnVersion = "migration"

// conversionKey is the annotation of a CustomResourceDefinition with what it says about conversions while it has the version.
const conversionKey = "migration.jobset-apiserver.io/conversion"

// openReturn adds that version, which has the same schema, and no subresources: one write has spec and status. Objects are not
// converted meanwhile: the webhook of the other controller, which does not run, would convert them.
func (r *router) openReturn(ctx context.Context, s subject) error {
	err := r.changeDefinition(ctx, s, func(spec map[string]any, annotations map[string]string) error {
		versions, _, err := unstructured.NestedSlice(spec, "versions")
		if err != nil {
			return err
		}
		source := versionOf(versions, s.resource.Version)
		if source == nil || versionOf(versions, returnVersion) != nil {
			return nil
		}
		conversion, err := json.Marshal(spec["conversion"])
		if err != nil {
			return err
		}
		annotations[conversionKey] = string(conversion)
		added := runtime.DeepCopyJSON(source)
		added["name"], added["served"], added["storage"] = returnVersion, true, false
		delete(added, "subresources")
		spec["versions"], spec["conversion"] = append(versions, added), map[string]any{"strategy": "None"}
		return nil
	})
	if err != nil {
		return err
	}
	return await(ctx, fmt.Sprintf("CustomResourceDefinition %s does not serve its version %s", s.definition(), returnVersion),
		func(ctx context.Context) error { return r.list(ctx, s.returning()) })
}

// closeReturn removes the version, and restores how objects are converted.
func (r *router) closeReturn(ctx context.Context, s subject) error {
	return r.changeDefinition(ctx, s, func(spec map[string]any, annotations map[string]string) error {
		versions, _, err := unstructured.NestedSlice(spec, "versions")
		if err != nil || versionOf(versions, returnVersion) == nil {
			return err
		}
		spec["versions"] = slices.DeleteFunc(versions, func(v any) bool {
			fields, ok := v.(map[string]any)
			return ok && fields["name"] == returnVersion
		})
		var conversion map[string]any
		if err := json.Unmarshal([]byte(annotations[conversionKey]), &conversion); err != nil {
			return fmt.Errorf("annotation %s: %w", conversionKey, err)
		}
		spec["conversion"] = conversion
		delete(annotations, conversionKey)
		return nil
	})
}

// versionOf returns a version of a CustomResourceDefinition.
func versionOf(versions []any, name string) map[string]any {
	for _, v := range versions {
		if fields, ok := v.(map[string]any); ok && fields["name"] == name {
			return fields
		}
	}
	return nil
}

// changeDefinition changes the spec and the annotations of a CustomResourceDefinition.
func (r *router) changeDefinition(ctx context.Context, s subject,
	change func(spec map[string]any, annotations map[string]string) error) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		definition, err := r.client.Resource(definitions).Get(ctx, s.definition(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		spec, _, err := unstructured.NestedMap(definition.Object, "spec")
		if err != nil {
			return err
		}
		annotations := definition.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		if err := change(spec, annotations); err != nil {
			return err
		}
		definition.Object["spec"] = spec
		definition.SetAnnotations(annotations)
		_, err = r.client.Resource(definitions).Update(ctx, definition, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("CustomResourceDefinition %s: %w", s.definition(), err)
	}
	return nil
}
