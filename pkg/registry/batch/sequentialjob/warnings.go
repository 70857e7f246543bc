// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package sequentialjob

import (
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/validation"
	podtemplate "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/podtemplate/validation"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/strategy"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset"
)

// nearLimit is how many characters a generated name may be away from its limit to be warned about.
const nearLimit = 5

// warnings lists what is valid, but probably not what the user wants.
func (s Strategy) warnings(sj *batch.SequentialJob) []string {
	w := &warner{}
	path := field.NewPath("spec")
	w.names(sj)
	w.template(&sj.Spec, path)
	w.claims(&sj.Spec, path)
	for i := range sj.Spec.Steps {
		step, p := &sj.Spec.Steps[i], path.Child("steps").Index(i)
		last := i == len(sj.Spec.Steps)-1
		switch {
		case step.Job != nil:
			w.job(step.Job, last, p.Child("job"))
		case step.JobSet != nil:
			w.timeToLive(step.JobSet.Spec.TTLSecondsAfterFinished, last, p.Child("jobSet", "spec"))
			s.jobSet(w, sj, i, p.Child("jobSet"))
		}
	}
	return w.Texts()
}

type warner struct{ strategy.Warnings }

// names warns of a name that a few more steps, or a longer name of the next run, would make too long.
func (w *warner) names(sj *batch.SequentialJob) {
	longest := validation.LongestName(sj)
	if n := len(longest.Name); n >= validation.MaxNameLength-nearLimit {
		w.Add(field.NewPath("metadata", "name"), "names of %s such as %q have %d of at most %d characters; use a shorter name", longest.What,
			longest.Name, n, validation.MaxNameLength)
	}
}

// template warns of a template, or of retries, that no step uses, and of volumes that do not pass data from step to step.
func (w *warner) template(spec *batch.SequentialJobSpec, path *field.Path) {
	containers := containersOf(spec)
	if len(containers) == 0 {
		if spec.Template != nil {
			w.Add(path.Child("template"), "has no effect, because no step is a container")
		}
		if spec.BackoffLimit != nil {
			w.Add(path.Child("backoffLimit"), "has no effect, because no step is a container; set it in the templates of the Jobs")
		}
	}
	if spec.Template == nil {
		return
	}
	mounts := mountsOf(containers)
	for i := range spec.Template.Spec.Volumes {
		volume := &spec.Template.Spec.Volumes[i]
		if n := mounts[volume.Name]; n > 1 && (volume.EmptyDir != nil || volume.Ephemeral != nil) {
			w.Add(path.Child("template", "spec", "volumes").Index(i),
				"%d steps mount %q, but each pod gets a volume of its own, so that a step does not see the files of the one before; use a "+
					"persistentVolumeClaim to pass files on", n, volume.Name)
		}
	}
}

// containersOf returns the containers that are steps.
func containersOf(spec *batch.SequentialJobSpec) (containers []*corev1.Container) {
	for i := range spec.Containers {
		containers = append(containers, &spec.Containers[i])
	}
	for i := range spec.Steps {
		if c := spec.Steps[i].Container; c != nil {
			containers = append(containers, c)
		}
	}
	return containers
}

// mountsOf returns how many of the containers mount each volume.
func mountsOf(containers []*corev1.Container) map[string]int {
	mounts := map[string]int{}
	for _, c := range containers {
		seen := sets.New[string]()
		for i := range c.VolumeMounts {
			seen.Insert(c.VolumeMounts[i].Name)
		}
		for name := range seen {
			mounts[name]++
		}
	}
	return mounts
}

// claims warns of claims that steps share whose pods select different nodes. The server does not read claims, so that it does not
// know their access modes.
func (w *warner) claims(spec *batch.SequentialJobSpec, path *field.Path) {
	shared := sharing{warner: w, first: map[string]user{}, warned: sets.New[string]()}
	for i := range spec.Steps {
		step, p := &spec.Steps[i], path.Child("steps").Index(i)
		switch {
		case step.Container != nil && spec.Template != nil:
			shared.use(step.Name, &spec.Template.Spec, path.Child("template", "spec"))
		case step.Job != nil:
			shared.use(step.Name, &step.Job.Spec.Template.Spec, p.Child("job", "spec", "template", "spec"))
		case step.JobSet != nil:
			jobs := p.Child("jobSet", "spec", "replicatedJobs")
			for j := range step.JobSet.Spec.ReplicatedJobs {
				rj := &step.JobSet.Spec.ReplicatedJobs[j]
				shared.use(step.Name, &rj.Template.Spec.Template.Spec, jobs.Index(j).Child("template", "spec", "template", "spec"))
			}
		}
	}
}

// sharing finds claims that steps share. It knows the first user of each claim.
type sharing struct {
	*warner
	first  map[string]user
	warned sets.Set[string]
}

// user is a step that uses a claim, and where its pods can run.
type user struct {
	step string
	pod  *corev1.PodSpec
}

// use notes the claims of the pods of a step, and warns once of each that pods on other nodes use.
func (s *sharing) use(step string, pod *corev1.PodSpec, path *field.Path) {
	for i := range pod.Volumes {
		source := pod.Volumes[i].PersistentVolumeClaim
		if source == nil || s.warned.Has(source.ClaimName) {
			continue
		}
		other, known := s.first[source.ClaimName]
		if !known {
			s.first[source.ClaimName] = user{step, pod}
			continue
		}
		if other.pod.NodeName == pod.NodeName && equality.Semantic.DeepEqual(other.pod.NodeSelector, pod.NodeSelector) {
			continue
		}
		s.warned.Insert(source.ClaimName)
		s.Add(path.Child("volumes").Index(i), "the steps %q and %q use the claim %q, but select different nodes; if its access mode is "+
			"ReadWriteOnce, the pods wait until the volume is detached from the other node, and never start if it cannot be attached to "+
			"theirs", other.step, step,
			source.ClaimName)
	}
}

// job warns of a Job that is rejected unless an admission webhook completes it, and of one that is gone early.
func (w *warner) job(template *batchv1.JobTemplateSpec, last bool, path *field.Path) {
	podtemplate.Missing(template, nil, path, w.Add)
	w.timeToLive(template.Spec.TTLSecondsAfterFinished, last, path.Child("spec"))
}

// timeToLive warns of logs that may be gone before the sequence has finished.
func (w *warner) timeToLive(seconds *int32, last bool, path *field.Path) {
	if seconds != nil && !last {
		w.Add(path.Child("ttlSecondsAfterFinished"),
			"counts from the end of the step; %d seconds later its pods and logs are deleted, even while later steps run; leave it out to keep "+
				"them until the sequence is deleted", *seconds)
	}
}

// jobSet repeats what users are told who create the JobSet themselves.
func (s Strategy) jobSet(w *warner, sj *batch.SequentialJob, index int, path *field.Path) {
	template := sj.Spec.Steps[index].JobSet
	child := validation.Child(sj, index, template, s.options)
	for _, warning := range jobset.Warnings(child, s.options.Gates) {
		if strings.HasPrefix(warning, "spec.") || strings.HasPrefix(warning, "metadata.") {
			warning = path.String() + "." + warning
		}
		w.Append(warning)
	}
	if template.Spec.ActiveDeadlineSeconds != nil && !s.options.Gates.JobSetActiveDeadlineSeconds {
		w.Add(path.Child("spec", "activeDeadlineSeconds"), "ignored, because the feature gate JobSetActiveDeadlineSeconds of the API server "+
			"is off")
	}
}
