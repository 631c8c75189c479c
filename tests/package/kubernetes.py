#!/usr/bin/env python3
"""The manifests in conf/kubernetes and the Helm chart in conf/helm, without a cluster: each object
fits the schemas of several versions of Kubernetes, what refers to each other is there, both ways
give the same objects, and the chart refuses wrong values.

    tests/package/kubernetes.py

Needs pip, and kubectl or go: what is missing comes from the package registries into a folder of
its own (helm is built, which takes minutes)."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BASE, CHART = ROOT / "conf/kubernetes", ROOT / "conf/helm/latchd"
HELM = "helm.sh/helm/v3/cmd/helm@v3.19.5"
KUSTOMIZE = "sigs.k8s.io/kustomize/kustomize/v5@v5.5.0"
VERSIONS = ["1.25", "1.28", "1.31", "1.34"]
# What the chart's objects have, and the others have not.
OF_HELM = {"helm.sh/chart", "app.kubernetes.io/managed-by", "app.kubernetes.io/version", "app.kubernetes.io/instance"}
WRONG_VALUES = [
    ("replicas=two", "replicas"),
    ("replicas=0", "replicas"),
    ("replcas=3", "replcas"),
    ("image.tag=", "tag"),
    ("config.redis=embedded", "redis"),
    ("config.LOG_LEVEL=debug", "LOG_LEVEL"),
    ("networkPolicy.redisPorts={70000}", "redisPorts"),
    ("serviceMonitor.interval=often", "interval"),
]


def run(*words, **more):
    return subprocess.run([str(w) for w in words], check=True, text=True, stdout=subprocess.PIPE, **more).stdout


def tool(name, module, scratch):
    """From the PATH, or built."""
    found = shutil.which(name)
    if found is None:
        run("go", "install", module, env={**os.environ, "GOBIN": str(scratch), "GOFLAGS": "-mod=mod"})
        found = scratch / name
    return found


class Tools:
    def __init__(self, scratch):
        self.scratch = scratch
        run(sys.executable, "-m", "pip", "install", "-q", "--target", scratch / "site", "kubernetes-validate")
        sys.path.insert(0, str(scratch / "site"))
        self.helm = tool("helm", HELM, scratch)
        if shutil.which("kubectl"):
            self.kustomize = ["kubectl", "kustomize"]
        else:
            self.kustomize = [tool("kustomize", KUSTOMIZE, scratch), "build"]

    def objects(self, text):
        import yaml  # pylint: disable=import-outside-toplevel
        return {one["kind"]: one for one in yaml.safe_load_all(text) if one}

    def kustomized(self):
        """With the component for Prometheus."""
        copy = self.scratch / "kubernetes"
        shutil.copytree(BASE, copy)
        path = copy / "kustomization.yaml"
        text = path.read_text()
        plain = self.objects(run(*self.kustomize, copy))
        path.write_text(text.replace("# components:\n#   - monitoring\n", "components:\n  - monitoring\n"))
        everything = self.objects(run(*self.kustomize, copy))
        assert set(everything) - set(plain) == {"ServiceMonitor"}, set(everything)
        return everything

    def rendered(self, *values):
        words = [word for value in values for word in ("--set", value)]
        return self.objects(run(self.helm, "template", "latchd", CHART, "--kube-version", VERSIONS[-1], *words))

    def refusal(self, value):
        got = subprocess.run([self.helm, "template", "latchd", CHART, "--kube-version", VERSIONS[-1], "--set", value],
                             text=True, capture_output=True, check=False)
        return got.stderr if got.returncode != 0 else None


def without_helm(value):
    if isinstance(value, dict):
        return {key: without_helm(part) for key, part in value.items() if key not in OF_HELM}
    if isinstance(value, list):
        return [without_helm(part) for part in value]
    return value


def fits_the_schemas(objects):
    import kubernetes_validate  # pylint: disable=import-outside-toplevel
    for kind, one in objects.items():
        for version in VERSIONS if kind != "ServiceMonitor" else []:
            kubernetes_validate.validate(one, version, strict=True)


def fit_together(objects):
    pod = objects["Deployment"]["spec"]["template"]
    labels = pod["metadata"]["labels"].items()
    for kind, path in (("Deployment", "selector"), ("Service", "selector"), ("PodDisruptionBudget", "selector"),
                       ("NetworkPolicy", "podSelector")):
        selector = objects[kind]["spec"][path]
        selector = selector.get("matchLabels", selector)
        assert selector and selector.items() <= labels, (kind, selector)
    monitor = objects["ServiceMonitor"]["spec"]
    assert monitor["selector"]["matchLabels"].items() <= objects["Service"]["metadata"]["labels"].items(), monitor
    assert {end["port"] for end in monitor["endpoints"]} <= {p["name"] for p in objects["Service"]["spec"]["ports"]}
    container, = pod["spec"]["containers"]
    ports = {port["name"] for port in container["ports"]}
    assert {port["targetPort"] for port in objects["Service"]["spec"]["ports"]} == ports
    for rule in objects["NetworkPolicy"]["spec"]["ingress"]:
        assert {port["port"] for port in rule["ports"]} <= ports, rule


def agrees_with_the_image_and_the_daemon(objects):
    spec = objects["Deployment"]["spec"]["template"]["spec"]
    container, = spec["containers"]
    image = (ROOT / "conf/container/Containerfile").read_text()
    user = spec["securityContext"]["runAsUser"]
    assert f"USER {user}:{spec['securityContext']['runAsGroup']}" in image
    exposed = set(re.search(r"EXPOSE (.*)", image)[1].split())
    assert {str(port["containerPort"]) for port in container["ports"]} == exposed
    for lock in (spec["securityContext"]["runAsNonRoot"], container["securityContext"]["readOnlyRootFilesystem"],
                 not container["securityContext"]["allowPrivilegeEscalation"], not spec["enableServiceLinks"]):
        assert lock is True, spec
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    keys = re.findall(r'^(?:KEY|CHOICE)\(\w+, "([a-z-]+)"', (ROOT / "src/daemon/config.def").read_text(), re.M)
    variables = {"LATCHD_" + key.replace("-", "_").upper() for key in keys}
    assert {variable["name"] for variable in container["env"]} <= variables, container["env"]
    wait = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert wait + 10 <= spec["terminationGracePeriodSeconds"], "no time to stop"


def main():
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="latchd-kubernetes-"))
    try:
        tools = Tools(scratch)
        kustomized, rendered = tools.kustomized(), tools.rendered("serviceMonitor.enabled=true")
        assert "ServiceMonitor" not in tools.rendered()
        assert "NetworkPolicy" not in tools.rendered("networkPolicy.enabled=false")
        for objects in (kustomized, rendered):
            fits_the_schemas(objects)
            fit_together(objects)
            agrees_with_the_image_and_the_daemon(objects)
        for kind, one in without_helm(rendered).items():
            assert one == kustomized[kind], f"{kind}:\n{one}\nis not\n{kustomized[kind]}"
        for value, word in WRONG_VALUES:
            refusal = tools.refusal(value)
            assert refusal and word in refusal, f"{value}: {refusal}"
        version = re.search(r"version: '(.*)'", (ROOT / "meson.build").read_text())[1]
        assert f"appVersion: {version}\n" in (CHART / "Chart.yaml").read_text()
        run(tools.helm, "lint", CHART)
        print(f"{len(kustomized)} objects fit Kubernetes {', '.join(VERSIONS)}; "
              f"the chart gives the same, and refuses {len(WRONG_VALUES)} wrong values")
    finally:
        subprocess.run(["chmod", "-R", "u+w", scratch], check=False)
        shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
