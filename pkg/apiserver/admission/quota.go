// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
)

// quotaInitializer configures what the quota plugin counts: objects, by count/<resource>.<group>.
type quotaInitializer struct{ counted []schema.GroupResource }

var _ admission.PluginInitializer = quotaInitializer{}

// Initialize implements admission.PluginInitializer.
func (i quotaInitializer) Initialize(plugin admission.Interface) {
	if wants, ok := plugin.(initializer.WantsQuotaConfiguration); ok {
		wants.SetQuotaConfiguration(newQuotaConfiguration(i.counted...))
	}
}

func newQuotaConfiguration(counted ...schema.GroupResource) quota.Configuration {
	evaluators := make([]quota.Evaluator, 0, len(counted))
	for _, resource := range counted {
		evaluators = append(evaluators, generic.NewObjectCountEvaluator(resource, neverList, ""))
	}
	return generic.NewConfiguration(evaluators, nil)
}

// neverList stands where the quota controller would list what is used. That controller runs in the main cluster and
// lists through aggregation; admission only adds to what it recorded.
func neverList(string) ([]runtime.Object, error) {
	return nil, errors.New("usage is computed by the quota controller of the main cluster")
}
