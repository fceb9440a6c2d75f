"""axe-core on every page of the built book: no serious or critical violation.

In light and dark mode, on a desktop and on a phone.
"""

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from built_book import EVERY_PAGE, go, resize, set_aside, switch

# axe's rule of contrast takes minutes on a long page, and thousands of its texts look the same: one
# of each look is marked.
MARK_ONE_OF_EACH_LOOK = """() => {
    const seen = new Set(), texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        const element = texts.currentNode.parentElement;
        if (!texts.currentNode.data.trim() || !element.checkVisibility()) continue;
        if (element.closest('script, style')) continue;
        const style = getComputedStyle(element);
        const look = [style.color, style.fontSize, style.fontWeight];
        for (let box = element; box; box = box.parentElement) {
            const { backgroundColor, opacity, filter } = getComputedStyle(box);
            look.push(backgroundColor, opacity, filter);
            if (backgroundColor.startsWith('rgb(')) break;
        }
        if (seen.has(look.join())) continue;
        seen.add(look.join());
        element.dataset.look = '';
    }
    return seen.size;
}"""


def serious(tab, context, options):
    """What axe finds, in words."""
    tab.evaluate(AXE_SCRIPT)
    violations = tab.evaluate(
        "([context, options]) => axe.run(context, options).then(results => results.violations)",
        # it would fetch the style sheets once more, which a page from disk may not
        [context, {"resultTypes": ["violations"], "preload": False, **options}],
    )
    return [
        f"{rule['id']}: {node['html'][:150]}: {node['failureSummary'][:200]}"
        for rule in violations
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]


EACH_WIDTH = pytest.mark.parametrize("width", [1400, 360])


@EVERY_PAGE
@EACH_WIDTH
def test_structure_names_and_roles(tab, width):
    resize(tab, width)
    # what watches sizes is told of them after the next frame
    tab.evaluate(
        "new Promise(done => requestAnimationFrame("
        "() => requestAnimationFrame(() => setTimeout(done))))"
    )
    # Most of a page's elements are what formulas are drawn with. Who listens to the page gets none
    # of it, but MathML instead.
    assert tab.locator("mjx-math:not([aria-hidden=true])").count() == 0
    set_aside(tab, "mjx-math")
    rules = {
        "color-contrast": {"enabled": False},
        "link-in-text-block": {"enabled": width == 1400},  # colours, which no width changes
    }
    assert serious(tab, {"include": [["body"]]}, {"rules": rules}) == []


@EVERY_PAGE
@EACH_WIDTH
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_contrast(tab, theme, width):
    resize(tab, width)
    switch(tab, theme)
    set_aside(tab, "mjx-container")  # formulas have the colour of their text
    tab.evaluate("document.querySelectorAll('details').forEach(folded => folded.open = true)")
    assert tab.evaluate(MARK_ONE_OF_EACH_LOOK) > 5
    context = {"include": [["[data-look]"]]}
    assert serious(tab, context, {"runOnly": {"type": "rule", "values": ["color-contrast"]}}) == []


def test_a_defect_is_noticed(new_tab):
    tab = go(new_tab(), "book/bibliography")
    tab.evaluate(
        """document.querySelector('article').insertAdjacentHTML('beforeend',
        '<img src="data:,"><p style="color: #999; background: #fff">hardly to be read</p>')"""
    )
    assert any(
        "image-alt" in violation for violation in serious(tab, {"include": [["article"]]}, {})
    )
    tab.evaluate(MARK_ONE_OF_EACH_LOOK)
    rule = {"runOnly": {"type": "rule", "values": ["color-contrast"]}}
    assert any(
        "hardly" in violation for violation in serious(tab, {"include": [["[data-look]"]]}, rule)
    )
