#!/usr/bin/env python3
# Copyright The jobset-apiserver Authors.
# SPDX-License-Identifier: Apache-2.0

"""Creates, changes, restarts and watches a JobSet with the ordinary Python client of Kubernetes, as an object without types.

It runs in the namespace of the kubeconfig and removes what it has created. Debian has the client as python3-kubernetes.
"""

import sys

from kubernetes import client, config, watch

GROUP, VERSION, PLURAL, NAME = "jobset.x-k8s.io", "v1alpha2", "jobsets", "python-example"

JOBSET = {
    "apiVersion": f"{GROUP}/{VERSION}",
    "kind": "JobSet",
    "metadata": {"name": NAME},
    "spec": {
        "suspend": True,
        "replicatedJobs": [{
            "name": "workers",
            "replicas": 2,
            "template": {"spec": {"backoffLimit": 0, "template": {"spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "main", "image": "busybox:1.37", "command": ["sleep", "10"]}],
            }}}},
        }],
    },
}


def condition(jobset, kind):
    """Returns whether the condition of this type is True."""
    return any(c["type"] == kind and c["status"] == "True" for c in jobset.get("status", {}).get("conditions", []))


def until(api, namespace, wanted):
    """Watches the JobSet until it is as wanted, and returns it. A watch that ends is begun again."""
    while True:
        for event in watch.Watch().stream(api.list_namespaced_custom_object, GROUP, VERSION, namespace, PLURAL,
                                          field_selector=f"metadata.name={NAME}", timeout_seconds=60):
            if event["type"] == "DELETED":
                sys.exit(f"{NAME} was deleted")
            if wanted(event["object"]):
                return event["object"]


def running(jobset):
    """Returns whether both Jobs are ready or have succeeded."""
    return any(s["ready"] + s["succeeded"] == 2 for s in jobset.get("status", {}).get("replicatedJobsStatus", []))


def run(api, namespace):
    """Prints each step."""
    created = api.create_namespaced_custom_object(GROUP, VERSION, namespace, PLURAL, JOBSET)
    print("created", created["metadata"]["name"])
    # The client sends a JSON merge patch for a dictionary: what is not in it stays as it is.
    api.patch_namespaced_custom_object(GROUP, VERSION, namespace, PLURAL, NAME, {"spec": {"suspend": False}})
    attempt = until(api, namespace, running)["status"]["attempts"][-1]["number"]
    # An action is a POST to a subresource, for which the client has no method of its own.
    answer = api.api_client.call_api(
        f"/apis/{GROUP}/{VERSION}/namespaces/{namespace}/{PLURAL}/{NAME}/restart", "POST",
        header_params={"Accept": "application/json", "Content-Type": "application/json"}, auth_settings=["BearerToken"],
        body={"spec": {"reason": "the example shows a restart", "preconditions": {"attempt": attempt}}},
        response_type="object", _return_http_data_only=True)
    print("restart:", answer["status"]["message"])
    ended = until(api, namespace, lambda jobset: condition(jobset, "Completed") or condition(jobset, "Failed"))
    if condition(ended, "Failed"):
        sys.exit(f"{NAME} failed")
    print(NAME, "has completed after", len(ended["status"]["attempts"]), "attempts")


def main():
    """Uses the current context of the kubeconfig."""
    config.load_kube_config()
    namespace = config.list_kube_config_contexts()[1]["context"].get("namespace", "default")
    api = client.CustomObjectsApi()
    try:
        run(api, namespace)
    finally:
        api.delete_namespaced_custom_object(GROUP, VERSION, namespace, PLURAL, NAME, propagation_policy="Background")


if __name__ == "__main__":
    main()
