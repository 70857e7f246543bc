// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

const (
	serverImage = "jobset-apiserver"
	pluginImage = "kubectl-jobset"
	// serverLabel is the label of the Deployment or StatefulSet of the server, and serverContainer the container of it in its pods.
	serverLabel     = "app.kubernetes.io/name=jobset-apiserver"
	serverContainer = "apiserver"
	jobContainer    = "migrate"
	// imageUser is the user that images are built for.
	imageUser = 65532
	// morePods is how many pods replace those that have failed.
	morePods = 6
	// keepJob is how long the Job and its logs are kept after its end.
	keepJob = 24 * 60 * 60
)

// server is what the pods of jobset-apiserver are like. It is empty if there are none.
type server struct {
	// name is the kind, namespace and name.
	name string
	pod  corev1.PodSpec
}

// findServer finds the Deployment or StatefulSet of jobset-apiserver.
func findServer(ctx context.Context, client kubernetes.Interface) (*server, error) {
	labeled := metav1.ListOptions{LabelSelector: serverLabel}
	deployments, err := client.AppsV1().Deployments(systemNamespace).List(ctx, labeled)
	if err != nil {
		return nil, fmt.Errorf("--in-cluster: looking for the Deployment of jobset-apiserver: %w", err)
	}
	for _, d := range deployments.Items {
		return &server{"Deployment " + systemNamespace + "/" + d.Name, d.Spec.Template.Spec}, nil
	}
	sets, err := client.AppsV1().StatefulSets(systemNamespace).List(ctx, labeled)
	if err != nil {
		return nil, fmt.Errorf("--in-cluster: looking for the StatefulSet of jobset-apiserver: %w", err)
	}
	for _, s := range sets.Items {
		return &server{"StatefulSet " + systemNamespace + "/" + s.Name, s.Spec.Template.Spec}, nil
	}
	return &server{}, nil
}

// container returns the container of the server; an empty one if there is none.
func (s *server) container() corev1.Container {
	at := slices.IndexFunc(s.pod.Containers, func(c corev1.Container) bool { return c.Name == serverContainer })
	if at < 0 {
		return corev1.Container{}
	}
	return s.pod.Containers[at]
}

// pluginImage derives the image of the plugin from that of the server: both have the same registry and tag.
func (s *server) pluginImage() (string, error) {
	const advice = "name the image of kubectl-jobset of the same version with --image"
	image := s.container().Image
	path, name := "", image
	if at := strings.LastIndex(image, "/"); at >= 0 {
		path, name = image[:at+1], image[at+1:]
	}
	name, tag, tagged := strings.Cut(name, ":")
	switch {
	case s.name == "":
		return "", fmt.Errorf("--image: namespace %s has no Deployment or StatefulSet with the label %s, whose image says where that of "+
			"kubectl-jobset is: install jobset-apiserver, or %s", systemNamespace, serverLabel, advice)
	case image == "":
		return "", fmt.Errorf("--image: %s has no container %s, whose image says where that of kubectl-jobset is: %s",
			s.name, serverContainer, advice)
	case strings.Contains(image, "@"):
		return "", fmt.Errorf("--image: the image of %s, %s, has a digest, which is not that of kubectl-jobset: %s", s.name, image, advice)
	case name != serverImage:
		return "", fmt.Errorf("--image: the image of %s, %s, is not called %s, so the name of that of kubectl-jobset is not known: %s",
			s.name, image, serverImage, advice)
	case tagged:
		return path + pluginImage + ":" + tag, nil
	}
	return path + pluginImage, nil
}

// job is the Job that runs the command. A pod that dies is replaced, and the next one goes on from the journal. The Job has no
// podFailurePolicy, with which a pod would not be replaced for as long as its node is lost.
func (r *remote) job(image string, like *server) *batchv1.Job {
	meta := accessMeta()
	meta.Annotations = map[string]string{directionKey: string(r.direction)}
	return &batchv1.Job{
		ObjectMeta: meta,
		Spec: batchv1.JobSpec{
			BackoffLimit:            ptr.To[int32](morePods),
			TTLSecondsAfterFinished: ptr.To[int32](keepJob),
			Template:                corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels}, Spec: r.pod(image, like)},
		},
	}
}

// pod runs where the pods of the server do, with their credentials for registries, as the Pod Security Standard "restricted" asks for.
func (r *remote) pod(image string, like *server) corev1.PodSpec {
	return corev1.PodSpec{
		ServiceAccountName: jobName, AutomountServiceAccountToken: ptr.To(true),
		RestartPolicy:    corev1.RestartPolicyNever, // the log of a pod that has failed can be read
		ImagePullSecrets: like.pod.ImagePullSecrets, NodeSelector: like.pod.NodeSelector, Tolerations: like.pod.Tolerations,
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](imageUser), RunAsGroup: ptr.To[int64](imageUser),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: jobContainer, Image: image, ImagePullPolicy: like.container().ImagePullPolicy,
			// Without a kubeconfig, the plugin uses the credentials of the pod.
			Args:                     []string{"migrate", string(r.direction), "--freeze-timeout=" + r.freezeFor.String(), "--" + inJobFlag},
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("128Mi"),
			}},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}},
	}
}
