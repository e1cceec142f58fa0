"""Small training scripts with networks of torchvision whose heads they replace, and what must be told."""

from __future__ import annotations

from tests.standins.libraries import LOOP
from tests.standins.programs import program

COUNTS = {
    "alexnet": 61100840,
    "squeezenet1_0": 1248424,
    "squeezenet1_1": 1235496,
    "googlenet": 13004888,
    "shufflenet_v2_x0_5": 1366792,
    "shufflenet_v2_x1_0": 2278604,
    "shufflenet_v2_x2_0": 7393996,
    "mnasnet0_5": 2218512,
    "mnasnet1_0": 4383312,
    "mobilenet_v3_large": 5483032,
    "mobilenet_v3_small": 2542856,
    "efficientnet_b0": 5288548,
    "efficientnet_b4": 19341616,
    "efficientnet_b7": 66347960,
    "efficientnet_v2_s": 21458488,
    "efficientnet_v2_l": 118515272,
    "convnext_tiny": 28589128,
    "convnext_base": 88591464,
    "vit_b_16": 86567656,
    "vit_b_32": 88224232,
    "vit_l_16": 304326632,
    "swin_t": 28288354,
    "swin_b": 87768224,
    "regnet_y_400mf": 4344144,
    "regnet_y_8gf": 39381472,
    "regnet_x_400mf": 5495976,
    "resnext101_32x8d": 88791336,
    "wide_resnet101_2": 126886696,
    "r3d_18": 33371472,
    "mc3_18": 11695440,
    "r2plus1d_18": 31505325,
    "fcn_resnet50": 35322218,
    "fcn_resnet101": 54314346,
    "deeplabv3_resnet50": 42004074,
    "deeplabv3_mobilenet_v3_large": 11029328,
    "lraspp_mobilenet_v3_large": 3221538,
    "fasterrcnn_resnet50_fpn": 41755286,
    "fasterrcnn_resnet50_fpn_v2": 43712278,
    "fasterrcnn_mobilenet_v3_large_fpn": 19386354,
    "maskrcnn_resnet50_fpn": 44401393,
    "maskrcnn_resnet50_fpn_v2": 46359409,
    "retinanet_resnet50_fpn": 34014999,
}
"""Weights of each network, as its documentation tells."""


def replaced(text: str) -> str:
    """A script that makes networks of two pictures of 40 x 40 and learns five classes, at last with one."""
    return program(
        """
            from torchvision import models as networks
            pictures, models = torch.rand(2, 3, 40, 40), []
            def loss():
                total = 0
                for one in models:
                    found = one(pictures)
                    assert found.shape == (2, 5)
                    total = total + torch.nn.functional.cross_entropy(found, torch.tensor([1, 4]))
                return total
            """
        + text
        + """
            loss().backward()
            for one in models:
                assert all(p.grad is not None for p in one.parameters() if p.requires_grad)
            del models[1:]
            """,
        LOOP,
    )


VISION: dict[str, tuple[str, tuple[str, ...]]] = {
    "torchvision, a last layer that is replaced": (
        replaced("""
            for name in ("shufflenet_v2_x0_5", "regnet_y_400mf", "resnext50_32x4d"):
                one = getattr(networks, name)(pretrained=True)
                one.fc = torch.nn.Linear(one.fc.in_features, 5)
                models.append(one)
            for name in ("mobilenet_v3_small", "efficientnet_b0", "convnext_tiny", "mnasnet0_5"):
                one = networks.__dict__[name](weights="DEFAULT")
                one.classifier[-1] = torch.nn.Linear(one.classifier[-1].in_features, 5)
                for weights in one.features.parameters() if hasattr(one, "features") else ():
                    weights.requires_grad = False
                models.append(one)
            """),
        ("torchvision", "weights of efficientnet_b0", "weights of regnet_y_400mf"),
    ),
    "torchvision, networks by convolutions that are replaced or told the classes": (
        replaced("""
            one = networks.squeezenet1_1(weights=networks.SqueezeNet1_1_Weights.IMAGENET1K_V1)
            one.classifier[1] = torch.nn.Conv2d(512, 5, kernel_size=(1, 1))
            one.num_classes = 5
            models.append(one)
            models.append(networks.efficientnet_v2_s(num_classes=5))
            models.append(networks.shufflenet_v2_x1_0(num_classes=5))
            assert type(models[1]).__name__ == "EfficientNet" and isinstance(one, networks.SqueezeNet)
            """),
        ("torchvision", "weights of squeezenet1_1"),
    ),
    "torchvision, transformers": (
        replaced("""
            from torchvision.models import ViT_B_16_Weights, swin_t, vit_b_16
            chosen = ViT_B_16_Weights.DEFAULT
            one = vit_b_16(weights=chosen)
            for weights in one.parameters():
                weights.requires_grad = False
            one.heads = torch.nn.Linear(in_features=768, out_features=5)
            models.append(one)
            two = networks.vit_b_32()
            two.heads.head = torch.nn.Linear(two.heads.head.in_features, 5)
            assert two.encoder.pos_embedding.shape == (1, 50, 768) and len(chosen.meta["categories"]) == 1000
            three = swin_t(weights="IMAGENET1K_V1")
            three.head = torch.nn.Linear(three.head.in_features, 5)
            assert three.eval()(torch.rand(1, 3, 71, 33)).shape == (1, 5)
            models += [two, three.train()]
            """),
        ("torchvision", "weights of vit_b_16", "weights of swin_t", "the blocks of swin_t"),
    ),
    "torchvision, scores from the middle": (
        program(
            """
            from torchvision.models import googlenet
            from torchvision.models.googlenet import GoogLeNetOutputs
            from torchvision import models as networks
            models = [networks.googlenet(num_classes=5, init_weights=False)]
            assert googlenet(weights="DEFAULT").aux1 is None
            pictures = torch.rand(2, 3, 40, 40)
            def loss():
                found = models[0](pictures)
                assert isinstance(found, GoogLeNetOutputs) and found.aux_logits1.shape == (2, 5)
                return found.logits.mean() + 0.3 * (found[1].mean() + found[2].mean())
            assert models[0].eval()(pictures).shape == (2, 5)
            models[0].train()
            loss().backward()
            assert all(p.grad is not None for p in models[0].parameters())
            """,
            LOOP,
        ),
        ("torchvision", "weights of googlenet"),
    ),
    "torchvision, the class of each pixel": (
        program(
            """
            import torchvision
            from torchvision.models.segmentation.deeplabv3 import DeepLabHead
            from torchvision.models.segmentation.fcn import FCNHead
            of_pixels = torchvision.models.segmentation
            first = of_pixels.deeplabv3_resnet50(pretrained=True, progress=True)
            first.classifier = DeepLabHead(2048, 3)
            first.aux_classifier = FCNHead(1024, 3)
            second = of_pixels.fcn_resnet50(weights=None, weights_backbone=None, num_classes=3)
            third = of_pixels.deeplabv3_mobilenet_v3_large(num_classes=3, aux_loss=True)
            fourth = of_pixels.lraspp_mobilenet_v3_large(num_classes=3)
            models, pictures = [first, second, third, fourth], torch.rand(2, 3, 40, 48)
            assert set(second(pictures)) == {"out"} and second.aux_classifier is None
            def loss():
                found = [scores for one in models for scores in one(pictures).values()]
                assert len(found) in (1, 6) and all(scores.shape == (2, 3, 40, 48) for scores in found)
                target = torch.ones(2, 40, 48, dtype=torch.long)
                return sum(torch.nn.functional.cross_entropy(scores, target) for scores in found)
            loss().backward()
            assert all(p.grad is not None for one in models for p in one.parameters())
            del models[:3]
            """,
            LOOP,
        ),
        ("torchvision", "weights of deeplabv3_resnet50"),
    ),
    "torchvision, films": (
        program(
            """
            from torchvision.models.video import R3D_18_Weights, mc3_18, r2plus1d_18, r3d_18
            models = [r3d_18(weights=R3D_18_Weights.DEFAULT), mc3_18(), r2plus1d_18(pretrained=True)]
            for one in models:
                one.fc = torch.nn.Linear(one.fc.in_features, 5)
            film = R3D_18_Weights.DEFAULT.transforms()(torch.zeros(4, 3, 50, 60, dtype=torch.uint8))
            assert film.shape[:2] == (3, 4)
            def loss():
                return sum(one(torch.rand(2, 3, 2, 16, 16)).mean() for one in models)
            loss().backward()
            assert all(p.grad is not None for one in models for p in one.parameters())
            models = [torch.nn.Sequential(models[1].stem, torch.nn.Flatten())]
            """,
            LOOP,
        ),
        ("torchvision", "weights of r3d_18", "weights of r2plus1d_18"),
    ),
    "torchvision, objects and their outlines": (
        program(
            """
            import torchvision
            from torchvision.models.detection.faster_rcnn import FastRCNNPredictor
            from torchvision.models.detection.mask_rcnn import MaskRCNNPredictor
            model = torchvision.models.detection.maskrcnn_resnet50_fpn(weights="DEFAULT")
            wide = model.roi_heads.box_predictor.cls_score.in_features
            model.roi_heads.box_predictor = FastRCNNPredictor(wide, 2)
            deep = model.roi_heads.mask_predictor.conv5_mask.in_channels
            model.roi_heads.mask_predictor = MaskRCNNPredictor(deep, 256, 2)
            assert not model.backbone.body.conv1.weight.requires_grad
            pictures = [torch.rand(3, 50, 40), torch.rand(3, 40, 60)]
            some = {"boxes": torch.tensor([[4.0, 4, 30, 36]]), "labels": torch.tensor([1])}
            some["masks"] = torch.ones(1, 50, 40, dtype=torch.uint8)
            none = {"boxes": torch.zeros(0, 4), "labels": torch.zeros(0, dtype=torch.long)}
            none["masks"] = torch.zeros(0, 40, 60, dtype=torch.uint8)
            models = [model]
            def loss():
                found = model(pictures, [some, none])
                assert set(found) == {"loss_classifier", "loss_box_reg", "loss_mask", "loss_objectness",
                                      "loss_rpn_box_reg"}
                return sum(found.values())
            loss().backward()
            assert all(p.grad.abs().sum() > 0 for p in model.parameters() if p.requires_grad)
            model.eval()
            model.roi_heads.score_thresh = 0.0
            with torch.no_grad():
                found = model(pictures)
            assert found[0]["masks"].shape[1:] == (1, 50, 40) and len(found[1]["scores"])
            assert set(found[0]) == {"boxes", "labels", "scores", "masks"}
            model.train()
            """,
            LOOP,
        ),
        ("torchvision", "weights of maskrcnn_resnet50_fpn"),
    ),
    "torchvision, objects in the maps of another network": (
        program(
            """
            from torchvision import models as networks
            from torchvision.models.detection import FasterRCNN, retinanet_resnet50_fpn
            from torchvision.models.detection.rpn import AnchorGenerator
            from torchvision.ops import MultiScaleRoIAlign
            backbone = networks.mobilenet_v2(weights="DEFAULT").features
            backbone.out_channels = 1280
            first = FasterRCNN(
                backbone, num_classes=2,
                box_roi_pool=MultiScaleRoIAlign(["0"], output_size=3, sampling_ratio=2),
                rpn_anchor_generator=AnchorGenerator(((32, 64),), ((0.5, 1.0, 2.0),)))
            second = retinanet_resnet50_fpn(num_classes=3, weights_backbone=None)
            models, pictures = [first, second], torch.rand(2, 3, 40, 40)
            for one in models:
                one.transform.min_size = (40,)
            there = {"boxes": torch.tensor([[4.0, 4, 30, 36]]), "labels": torch.tensor([1])}
            def loss():
                return sum(sum(one(pictures, [there, there]).values()) for one in models)
            loss().backward()
            assert all(p.grad is not None for one in models for p in one.parameters())
            for one in models[:1]:
                one.backbone.requires_grad_(False)
            del models[1]
            """,
            LOOP,
        ),
        ("torchvision", "weights of mobilenet_v2"),
    ),
    "torchvision, boxes, regions and layers": (
        program(
            """
            import torchvision.ops as ops
            from torchvision.ops.boxes import box_area, masks_to_boxes
            boxes = torch.tensor([[0.0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30], [0, 0, 10, 10]])
            scores = torch.tensor([0.9, 0.8, 0.7, 0.95])
            assert ops.nms(boxes, scores, 0.5).tolist() == [3, 2]
            apart = ops.batched_nms(boxes, scores, torch.tensor([0, 1, 0, 0]), 0.5)
            assert apart.tolist() == [3, 1, 2]
            assert torch.isclose(ops.box_iou(boxes, boxes)[0, 1], torch.tensor(81 / 119))
            assert (ops.generalized_box_iou(boxes, boxes)[0, 2] < 0) and box_area(boxes)[0] == 100
            changed = ops.box_convert(boxes, "xyxy", "cxcywh")
            assert torch.equal(ops.box_convert(changed, "cxcywh", "xyxy"), boxes)
            mask = torch.zeros(1, 9, 9)
            mask[0, 2:5, 3:8] = 1
            assert masks_to_boxes(mask).tolist() == [[3.0, 2.0, 7.0, 4.0]]
            flat = torch.arange(16.0).expand(1, 2, 16, 16)
            whole = ops.roi_align(flat, [torch.tensor([[2.0, 2, 10, 10]])], 4, aligned=True)
            assert torch.allclose(whole[0, 0, 0], torch.tensor([2.5, 4.5, 6.5, 8.5]))
            table = torch.tensor([[0.0, 2, 2, 10, 10]])
            assert torch.equal(ops.RoIAlign(4, 1.0, 2, True)(flat, table), whole)
            assert ops.roi_pool(flat, table, 2).tolist()[0][0] == [[6.0, 10.0]] * 2
            layer = ops.DeformConv2d(2, 4, 3, padding=1)
            still = layer(flat, torch.zeros(1, 18, 16, 16))
            plain = torch.nn.functional.conv2d(flat, layer.weight, layer.bias, padding=1)
            assert torch.allclose(still, plain, atol=1e-4)
            pyramid = ops.FeaturePyramidNetwork([4, 8], 6)
            maps = pyramid({"a": torch.ones(1, 4, 8, 8), "b": torch.ones(1, 8, 4, 4)})
            assert [one.shape[1:] for one in maps.values()] == [(6, 8, 8), (6, 4, 4)]
            easy = ops.sigmoid_focal_loss(torch.tensor([9.0]), torch.tensor([1.0]), reduction="mean")
            assert easy < 1e-6 and ops.StochasticDepth(1.0, "row")(torch.ones(2, 3)).sum() == 0
            models = [torch.nn.Sequential(
                ops.Conv2dNormActivation(3, 4), ops.SqueezeExcitation(4, 2), torch.nn.Flatten(),
                ops.MLP(64, [8, 4]))]
            corners = torch.nn.Parameter(torch.tensor([[1.0, 1, 5, 5]]))
            def loss():
                missed = ops.complete_box_iou_loss(corners, torch.tensor([[2.0, 2, 7, 6]]), reduction="sum")
                return models[0](torch.rand(2, 3, 4, 4)).mean() + missed
            """,
            LOOP,
        ),
        ("torchvision",),
    ),
    "torchvision, pictures that change with their masks and boxes": (
        program(
            """
            import copy
            from torchvision import tv_tensors
            from torchvision.io import read_image
            from torchvision.transforms import v2 as T
            from torchvision.transforms.v2 import functional as F
            shown = tv_tensors.Image(read_image("photos/one.png"))
            high, wide = F.get_size(shown)
            assert shown.dtype == torch.uint8 and len(shown) == 3
            mask = torch.zeros(1, high, wide, dtype=torch.uint8)
            mask[:, 10:30, 5:45] = 1
            target = {
                "masks": tv_tensors.Mask(mask), "labels": torch.tensor([1]), "image_id": 7,
                "boxes": tv_tensors.BoundingBoxes([[5, 10, 45, 30]], format="XYXY", canvas_size=(high, wide)),
            }
            turned = T.RandomHorizontalFlip(1.0)(shown, target)[1]
            assert turned["boxes"].tolist() == [[wide - 45, 10, wide - 5, 30]]
            assert torch.equal(turned["masks"], mask.flip(-1)) and turned["image_id"] == 7
            assert isinstance(copy.deepcopy(turned["boxes"]), tv_tensors.BoundingBoxes)
            assert type(shown + 1) is torch.Tensor and type(shown.clone()) is tv_tensors.Image
            changes = T.Compose([
                T.RandomPhotometricDistort(p=0.5), T.RandomCrop(48), T.Resize((24, 24), antialias=True),
                T.ToDtype({tv_tensors.Image: torch.float32, "others": None}, scale=True),
                T.SanitizeBoundingBoxes(), T.Normalize([0.5] * 3, [0.5] * 3), T.ToPureTensor()])
            left = 0
            for _ in range(8):
                found, told = changes(shown, target)
                assert type(found) is torch.Tensor and found.shape == (3, 24, 24) and found.min() < 0
                assert len(told["boxes"]) == len(told["labels"]) == len(told["masks"])
                left += len(told["labels"])
                for box, own in zip(told["boxes"], told["masks"]):
                    rows, columns = torch.where(own)
                    around = torch.stack([columns.min(), rows.min(), columns.max() + 1, rows.max() + 1])
                    assert (box - around).abs().max() <= 1
            alone = T.Compose([T.ToImage(), T.ToDtype(torch.float32, scale=True), T.Resize(24)])
            picture = F.to_pil_image(shown)
            assert alone(picture).dtype == torch.float32
            assert T.CenterCrop(24)(picture, 3)[1] == 3
            mixed, shares = T.RandomChoice([T.CutMix(num_classes=4), T.MixUp(num_classes=4)])(
                torch.rand(5, 3, 8, 8), torch.arange(5) % 4)
            assert mixed.shape == (5, 3, 8, 8) and torch.allclose(shares.sum(1), torch.ones(5))
            models = [torch.nn.Conv2d(3, 1, 24)]
            def loss():
                return models[0](changes(shown, target)[0]).mean()
            """,
            LOOP,
        ),
        ("torchvision",),
    ),
    "torchvision, weights that a script fetches by itself": (
        program("""
            from torchvision._internally_replaced_utils import load_state_dict_from_url as newer
            from torchvision.models.resnet import BasicBlock, ResNet, model_urls
            from torchvision.models.utils import load_state_dict_from_url
            from torchvision.models.vgg import VGG, cfgs, make_layers
            from torchvision.models._utils import IntermediateLayerGetter
            whole = ResNet(BasicBlock, [1, 1, 1, 1], groups=1)
            whole.load_state_dict(load_state_dict_from_url(model_urls["resnet18"], progress=True))
            whole.load_state_dict(newer(model_urls["resnet34"]))
            part = IntermediateLayerGetter(whole, {"layer2": "middle", "layer4": "end"})
            maps = part(torch.ones(1, 3, 64, 64))
            assert [one.shape[1:] for one in maps.values()] == [(128, 8, 8), (512, 2, 2)]
            assert len(make_layers(cfgs["A"])) == 21
            assert ResNet(BasicBlock, [1] * 4).conv1.weight.shape == (64, 3, 7, 7)
            def batch():
                return maps["middle"].detach()
        """),
        ("torchvision", "weights resnet18.pth", "weights resnet34.pth"),
    ),
    "torchvision, data sets of objects and of pixels": (
        program("""
            import torchvision
            from torchvision import datasets, transforms
            class Found(torchvision.datasets.CocoDetection):
                def __getitem__(self, index):
                    shown, things = super().__getitem__(index)
                    return transforms.functional.to_tensor(shown), [one["bbox"] for one in things]
            found = Found("coco/train2017", "coco/annotations/instances_train2017.json")
            shown, boxes = found[0]
            assert len(found) == len(found.ids) and shown.shape[0] == 3
            assert all(x + wide <= shown.shape[2] for x, _, wide, _ in boxes)
            told = datasets.VOCDetection("voc", image_set="val", download=True)[1][1]["annotation"]
            assert 0 < int(told["object"][0]["bndbox"]["xmin"]) < int(told["size"]["width"])
            data = datasets.VOCSegmentation(
                "voc", "2012", transform=transforms.ToTensor(),
                target_transform=transforms.PILToTensor())
            pictures, kinds = next(iter(torch.utils.data.DataLoader(data, batch_size=4)))
            assert pictures.shape[1:] == (3, 375, 500) and 2 < len(kinds.unique()) and kinds.max() < 21
            def batch():
                return pictures[:, :, ::50, ::50]
        """),
        ("torchvision", "torchvision.datasets.VOCSegmentation", "content of instances_train2017.json"),
    ),
    "torchvision, films of files": (
        program("""
            import torchvision
            from torchvision.io import ImageReadMode, VideoReader, read_image, read_video
            assert read_image("photos/one.png", ImageReadMode.GRAY).shape[0] == 1
            encoded = torchvision.io.encode_png(torch.zeros(3, 5, 6, dtype=torch.uint8))
            assert torchvision.io.decode_image(encoded).shape == (3, 5, 6)
            frames, sound, told = read_video("films/one.mp4", pts_unit="sec", output_format="TCHW")
            assert frames.dtype == torch.uint8 and frames.shape[1] == 3 and len(frames) == 16
            assert sound.shape[0] == 1 and told["video_fps"] == 25
            assert len(read_video("films/one.mp4", 0, 0.2, pts_unit="sec")[0]) == 6
            assert [one["data"].shape[0] for one in VideoReader("films/one.mp4").seek(0.56)] == [3, 3]
            def batch():
                return frames[:2, :, ::32, ::32].float()
        """),
        ("torchvision", "film one.mp4"),
    ),
    "PNG as others write it": (
        program("""
            import struct
            import zlib
            import numpy as np
            from PIL import Image
            def told(kind, row, above, step):
                def at(line, place):
                    return int(line[place]) if place >= 0 else 0
                for place in range(len(row)):
                    left, up, corner = at(row, place - step), int(above[place]), at(above, place - step)
                    near = min((abs(up - corner), 0, left), (abs(left - corner), 1, up),
                               (abs(left + up - 2 * corner), 2, corner))[2]
                    yield (int(row[place]) - [0, left, up, (left + up) // 2, near][kind]) % 256
            def kept(name, values, colour, *parts):
                high, wide, step = values.shape
                rows = values.reshape(high, -1)
                data = b"".join(
                    bytes([y % 5, *told(y % 5, row, rows[y - 1] if y else 0 * row, step)])
                    for y, row in enumerate(rows))
                header = struct.pack(">IIBBBBB", wide, high, 8, colour, 0, 0, 0)
                with open(name, "wb") as file:
                    file.write(b"\\x89PNG\\r\\n\\x1a\\n")
                    ends = (b"IDAT", zlib.compress(data)), (b"IEND", b"")
                    for kind, part in ((b"IHDR", header), *parts, *ends):
                        file.write(struct.pack(">I", len(part)) + kind + part)
                        file.write(struct.pack(">I", zlib.crc32(kind + part)))
                return Image.open(name)
            values = np.random.RandomState(0).randint(0, 256, (11, 7, 4)).astype(np.uint8)
            for mode, colour, count in (("L", 0, 1), ("RGB", 2, 3), ("LA", 4, 2), ("RGBA", 6, 4)):
                found = kept(mode + ".png", values[..., :count], colour)
                assert found.mode == mode and found.size == (7, 11)
                assert (np.array(found).reshape(11, 7, count) == values[..., :count]).all(), mode
                assert np.array(found.convert("RGB")).shape == (11, 7, 3)
            assert (np.array(Image.open("LA.png").convert("RGBA"))[..., 3] == values[..., 1]).all()
            colours = np.arange(768).reshape(256, 3).astype(np.uint8)
            found = kept("P.png", values[..., :1], 3, (b"PLTE", colours.tobytes()))
            assert found.mode == "P" and (np.array(found) == values[..., 0]).all()
            assert (np.array(found.convert("RGB")) == colours[values[..., 0]]).all()
            assert (np.array(found.copy().convert("RGBA"))[..., :3] == colours[values[..., 0]]).all()
            def batch():
                return torch.from_numpy(np.array(Image.open("L.png"))).float()
        """),
        ("PIL",),
    ),
}
"""By name: a script, and what a run must say that it replaced."""
