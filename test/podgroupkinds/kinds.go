// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podgroupkinds checks PodGroups of schedulers that define them by CustomResourceDefinitions, in the way in
// which kube-apiserver does, without a cluster: against a structural schema, with the code that kube-apiserver uses.
// The schemas are written for these tests, and have the fields with their types.
package podgroupkinds

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

//go:embed kinds.yaml
var definitions []byte

// kind is a version of PodGroups.
type kind struct {
	Group   string                          `json:"group"`
	Version string                          `json:"version"`
	Schema  apiextensionsv1.JSONSchemaProps `json:"schema"`
}

// Check returns why a PodGroup would be refused, or lose fields; nil if it would be stored as it is.
func Check(object *unstructured.Unstructured) error {
	var kinds []kind
	if err := yaml.Unmarshal(definitions, &kinds); err != nil {
		return err
	}
	for i := range kinds {
		if k := &kinds[i]; object.GetAPIVersion() == k.Group+"/"+k.Version && object.GetKind() == "PodGroup" {
			return k.check(object)
		}
	}
	return fmt.Errorf("no definition of %s of %s", object.GetKind(), object.GetAPIVersion())
}

func (k *kind) check(object *unstructured.Unstructured) error {
	props := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&k.Schema, props, nil); err != nil {
		return err
	}
	structural, err := schema.NewStructural(props)
	if err != nil {
		return err
	}
	problems := schema.ValidateStructural(field.NewPath("schema"), structural)
	validator, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		return err
	}
	sent, err := decoded(object)
	if err != nil {
		return err
	}
	problems = append(problems, validation.ValidateCustomResource(nil, sent, validator)...)
	problems = append(problems, names(object)...)
	for _, path := range pruning.PruneWithOptions(sent, structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}) {
		problems = append(problems, field.Invalid(field.NewPath(path), nil, "unknown field"))
	}
	return problems.ToAggregate()
}

// decoded returns an object as the API server has it after it was sent.
func decoded(object *unstructured.Unstructured) (map[string]any, error) {
	content, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(content); err != nil {
		return nil, err
	}
	return out.Object, nil
}

// names checks what does not depend on the schema: the name, also as the value of a label, and numbers of 32 bits.
func names(object *unstructured.Unstructured) (problems field.ErrorList) {
	for _, text := range append(utilvalidation.IsDNS1123Subdomain(object.GetName()), utilvalidation.IsValidLabelValue(object.GetName())...) {
		problems = append(problems, field.Invalid(field.NewPath("metadata", "name"), object.GetName(), text))
	}
	if n, _, _ := unstructured.NestedInt64(object.Object, "spec", "minMember"); n > math.MaxInt32 {
		problems = append(problems, field.Invalid(field.NewPath("spec", "minMember"), n, "must be a number of 32 bits"))
	}
	return problems
}
