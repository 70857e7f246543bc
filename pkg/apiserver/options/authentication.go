// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
)

// publicPaths answer callers without an identity: probes have none.
var publicPaths = sets.New("/healthz", "/livez", "/readyz")

func (o *Options) applyAuthentication(generic *server.RecommendedConfig) error {
	err := o.Recommended.Authentication.ApplyTo(&generic.Authentication, generic.SecureServing, generic.OpenAPIConfig)
	if err != nil {
		return blame("authentication-kubeconfig", err, "allow its user to read the configmap extension-apiserver-authentication in kube-system")
	}
	generic.Authentication.Authenticator = refuseAnonymous(generic.Authentication.Authenticator)
	return nil
}

// refuseAnonymous lets callers without an identity pass to public paths only. The library would ask the main cluster
// whether they are authorized, which makes each of them cost a request there.
func refuseAnonymous(next authenticator.Request) authenticator.Request {
	return authenticator.RequestFunc(func(req *http.Request) (*authenticator.Response, bool, error) {
		response, ok, err := next.AuthenticateRequest(req)
		if ok && response.User.GetName() == user.Anonymous && !publicPaths.Has(req.URL.Path) {
			return nil, false, nil
		}
		return response, ok, err
	})
}

// newInformers shares informers of the main API. They keep no managed fields: nobody here applies to these objects.
func newInformers(client kubernetes.Interface) informers.SharedInformerFactory {
	return informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(func(object any) (any, error) {
		if accessor, err := meta.Accessor(object); err == nil {
			accessor.SetManagedFields(nil)
		}
		return object, nil
	}))
}
