// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Command models-schema prints the generated OpenAPI definitions as one OpenAPI v2 document. The generator of apply
// configurations reads it to learn list types and merge keys. update-codegen.sh runs it.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/util"
	"k8s.io/kube-openapi/pkg/validation/spec"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/openapi"
)

// roots are the types that clients apply.
var roots = []util.OpenAPIModelNamer{v1alpha2.JobSet{}, batchv1alpha1.SequentialJob{}, batchv1alpha1.PodReadinessGroup{},
	leaderworkersetv1.LeaderWorkerSet{}, disaggregatedsetv1.DisaggregatedSet{}, disaggregatedsetv1.DisaggregatedSetRoleScaler{}}

func main() {
	if err := json.NewEncoder(os.Stdout).Encode(document()); err != nil {
		fmt.Fprintf(os.Stderr, "writing the models schema: %v\n", err)
		os.Exit(1)
	}
}

func document() *spec.Swagger {
	definitions := spec.Definitions{}
	for name, definition := range openapi.GetOpenAPIDefinitions(refTo) {
		definitions[name] = v2(definition.Schema)
	}
	for _, root := range roots {
		definitions[goName(root)] = alias(definitions[root.OpenAPIModelName()], root.OpenAPIModelName())
	}
	return &spec.Swagger{SwaggerProps: spec.SwaggerProps{
		Swagger:     "2.0",
		Info:        &spec.Info{InfoProps: spec.InfoProps{Title: "jobset-apiserver", Version: "unversioned"}},
		Definitions: definitions,
	}}
}

func refTo(name string) spec.Ref { return spec.MustCreateRef("#/definitions/" + name) }

// v2 returns the OpenAPI v2 form of a schema, which types such as IntOrString carry beside their v3 form.
func v2(schema spec.Schema) spec.Schema {
	if embedded, ok := schema.Extensions[common.ExtensionV2Schema].(spec.Schema); ok {
		return embedded
	}
	return schema
}

// goName is the name under which the generator of apply configurations looks a root type up: it knows nothing of model
// names and derives one from the Go package.
func goName(root any) string {
	t := reflect.TypeOf(root)
	return util.ToRESTFriendlyName(t.PkgPath() + "." + t.Name())
}

// alias copies a root definition for use under another name. Extract functions look it up by that one; converters made
// from a scheme (those of fake clientsets) by the model name. Definitions that nothing refers to are dropped by the
// generator, which is why the alias refers to its original.
func alias(schema spec.Schema, original string) spec.Schema {
	schema.AllOf = []spec.Schema{{SchemaProps: spec.SchemaProps{Ref: refTo(original)}}}
	return schema
}
