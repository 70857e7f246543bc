// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"
	mutatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	validatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
)

// paramsUnknown is what a plugin says while it does not know the parameters of a policy. It watches them in the main cluster with the
// account of this server, whose roles name the kinds that it may read. kube-apiserver may read all kinds: the same policy works for kinds
// that it serves itself.
var paramsUnknown = regexp.MustCompile("paramKind kind `&ParamKind{APIVersion:([^,`]+),Kind:([^,`]+),}` not (?:yet synced|known)")

// explained is a plugin whose refusals say what to do about a state of the cluster that their readers cannot guess.
type explained struct {
	admission.Interface
	// explain adds to a message; it returns others as they are.
	explain func(message string) string
}

var (
	_ admission.MutationInterface   = explained{}
	_ admission.ValidationInterface = explained{}
)

// explainRefusals wraps the plugins of policies and of quotas.
func explainRefusals(plugin admission.Interface, name string) admission.Interface {
	switch name {
	case mutatingpolicy.PluginName, validatingpolicy.PluginName:
		return explained{plugin, withPermission}
	case resourcequota.PluginName:
		return explained{plugin, withCount}
	}
	return plugin
}

// Admit implements admission.MutationInterface.
func (e explained) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if plugin, ok := e.Interface.(admission.MutationInterface); ok {
		return e.refusal(plugin.Admit(ctx, a, o))
	}
	return nil
}

// Validate implements admission.ValidationInterface.
func (e explained) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if plugin, ok := e.Interface.(admission.ValidationInterface); ok {
		return e.refusal(plugin.Validate(ctx, a, o))
	}
	return nil
}

// refusal returns an error with its messages explained.
func (e explained) refusal(err error) error {
	var refusal *apierrors.StatusError
	if !errors.As(err, &refusal) || e.explain(refusal.ErrStatus.Message) == refusal.ErrStatus.Message {
		return err
	}
	status := refusal.ErrStatus.DeepCopy()
	status.Message = e.explain(status.Message)
	if status.Details != nil {
		for i := range status.Details.Causes {
			status.Details.Causes[i].Message = e.explain(status.Details.Causes[i].Message)
		}
	}
	return &apierrors.StatusError{ErrStatus: *status}
}

// withCount says how long a quota of our kinds is not counted. Its usage is unknown only if it is older than the first look of
// kube-controller-manager at our kinds.
func withCount(message string) string {
	if !strings.Contains(message, "status unknown for quota: ") {
		return message
	}
	return message + ": kube-controller-manager has not counted them yet; it counts a quota that was created before it knew the kind within " +
		"5 minutes, and at once if you delete the quota and create it again"
}

func withPermission(message string) string {
	found := paramsUnknown.FindStringSubmatch(message)
	if found == nil {
		return message
	}
	group, _, named := strings.Cut(found[1], "/")
	if !named {
		group = "the core group"
	}
	return message + fmt.Sprintf(": jobset-apiserver needs the permission to get, list and watch the parameters of the policy (%s of %s), by "+
		"a ClusterRole with the label jobset-apiserver.io/aggregate-to-policy-params=true; `kubectl jobset doctor` prints the command",
		found[2], group)
}
